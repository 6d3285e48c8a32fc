// A stdio server with a TypeScript SDK of generation 2: serves 2026-07-28, and the handshake revisions unless it is told
// `strict`. Offers what README.md describes; ends at the end of its input.

import { setTimeout as sleep } from "node:timers/promises";

import { inputRequired, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { contents, prompt, PROMPTS, QUESTION, RESOURCES, STEP, TEMPLATES, text, TOOLS } from "./offer.mjs";

const strict = process.argv[2] === "strict";

function build({ era }) {
    const server = new Server(
        { name: "interop-peer", version: "1.0.0" },
        { capabilities: { tools: {}, resources: {}, prompts: {} } },
    );
    server.setRequestHandler("tools/list", async () => ({ tools: TOOLS }));
    server.setRequestHandler("resources/list", async () => ({ resources: RESOURCES }));
    server.setRequestHandler("resources/templates/list", async () => ({ resourceTemplates: TEMPLATES }));
    server.setRequestHandler("resources/read", async ({ params }) => ({ contents: [contents(params.uri)] }));
    server.setRequestHandler("prompts/list", async () => ({ prompts: PROMPTS }));
    server.setRequestHandler("prompts/get", async ({ params }) => prompt(params.name, params.arguments));
    server.setRequestHandler("tools/call", async ({ params }, { mcpReq }) => {
        switch (params.name) {
            case "echo":
                return text(params.arguments.text);
            case "slow":
                return slow(params.arguments.steps, mcpReq);
            case "ask":
                return era === "modern"
                    ? askWithinTheResult(params.arguments.what, mcpReq)
                    : askByRequest(params.arguments.what, mcpReq);
            default:
                throw new Error(`unknown tool: ${params.name}`);
        }
    });
    return server;
}

async function slow(total, { _meta, notify, signal }) {
    for (let progress = 1; progress <= total; progress += 1) {
        await sleep(STEP, undefined, { signal });
        if (_meta?.progressToken !== undefined) {
            const params = { progressToken: _meta.progressToken, progress, total };
            await notify({ method: "notifications/progress", params });
        }
    }
    return text("done");
}

// 2026-07-28: the first round asks, the second one has the answer and must bring the state back.
function askWithinTheResult(what, { inputResponses, requestState }) {
    const answer = inputResponses?.answer;
    if (answer === undefined) {
        const asked = what === "roots" ? inputRequired.listRoots() : inputRequired.createMessage(QUESTION);
        return inputRequired({ inputRequests: { answer: asked }, requestState: `asked ${what}` });
    }
    if (requestState() !== `asked ${what}`) throw new Error(`another state came back: ${requestState()}`);
    return text(what === "roots" ? answer.roots[0].uri : answer.content.text);
}

async function askByRequest(what, { send }) {
    if (what === "roots") return text((await send({ method: "roots/list" })).roots[0].uri);
    return text((await send({ method: "sampling/createMessage", params: QUESTION })).content.text);
}

serveStdio(build, { legacy: strict ? "reject" : "serve" });
