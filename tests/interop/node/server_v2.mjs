// A stdio server with a TypeScript SDK of generation 2: serves 2026-07-28, and the handshake revisions unless it is told
// `strict`. Offers what README.md describes; ends at the end of its input.

import { setTimeout as sleep } from "node:timers/promises";

import { CLIENT_CAPABILITIES_META_KEY, inputRequired, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { contents, prompt, PROMPTS, QUESTION, RESOURCES, STEP, STEPS, TEMPLATES, text, TOOLS } from "./offer.mjs";

const STATE = "asked, and waiting";

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
                return slow(mcpReq);
            case "ask":
                return era === "modern"
                    ? askWithinTheResult(mcpReq)
                    : askByRequest(server.getClientCapabilities(), mcpReq);
            default:
                throw new Error(`unknown tool: ${params.name}`);
        }
    });
    return server;
}

async function slow({ _meta, notify, signal }) {
    for (let progress = 1; progress <= STEPS; progress += 1) {
        await sleep(STEP, undefined, { signal });
        if (_meta?.progressToken !== undefined) {
            const params = { progressToken: _meta.progressToken, progress, total: STEPS };
            await notify({ method: "notifications/progress", params });
        }
    }
    return text("done");
}

// 2026-07-28: the first round asks, the second one has the answers and must bring the state back.
function askWithinTheResult({ envelope, inputResponses, requestState }) {
    const { roots, sampling } = envelope[CLIENT_CAPABILITIES_META_KEY];
    if ((roots || sampling) && inputResponses === undefined) {
        const inputRequests = {};
        if (roots) inputRequests.roots = inputRequired.listRoots();
        if (sampling) inputRequests.sampling = inputRequired.createMessage(QUESTION);
        return inputRequired({ inputRequests, requestState: STATE });
    }
    if ((roots || sampling) && requestState() !== STATE) throw new Error(`another state came back: ${requestState()}`);
    const answers = [];
    if (roots) answers.push(inputResponses.roots.roots[0].uri);
    if (sampling) answers.push(inputResponses.sampling.content.text);
    return text(answers.join("\n"));
}

async function askByRequest({ roots, sampling }, { send }) {
    const answers = [];
    if (roots) answers.push((await send({ method: "roots/list" })).roots[0].uri);
    if (sampling) answers.push((await send({ method: "sampling/createMessage", params: QUESTION })).content.text);
    return text(answers.join("\n"));
}

serveStdio(build, { legacy: strict ? "reject" : "serve" });
