// A server with a TypeScript SDK of generation 2: serves 2026-07-28, and the handshake revisions unless it is told `strict`.
// `server_v2.mjs MODE [--http]` offers what README.md describes. Over stdio it ends at the end of its input.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import {
    CLIENT_CAPABILITIES_META_KEY,
    createMcpHandler,
    inputRequired,
    isLegacyRequest,
    Server,
    WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { EventStore, listenToFetch } from "./listen.mjs";
import {
    completion,
    contents,
    form,
    INTERVIEW,
    prompt,
    PROMPTS,
    QUESTION,
    RESOURCES,
    STEP,
    STEPS,
    TEMPLATES,
    text,
    TOOLS,
} from "./offer.mjs";

const STATE = "asked, and waiting";

const strict = process.argv[2] === "strict";

function build({ era }) {
    const server = new Server(
        { name: "interop-peer", version: "1.0.0" },
        { capabilities: { tools: {}, resources: {}, prompts: {}, logging: {}, completions: {} } },
    );
    server.setRequestHandler("tools/list", async () => ({ tools: [...TOOLS, INTERVIEW] }));
    server.setRequestHandler("completion/complete", async ({ params }) => completion(params.argument));
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
            case "note":
                await mcpReq.log("info", "noted");
                return text("noted");
            case "interview":
                return era === "modern" ? interviewWithinTheResult(mcpReq) : interviewByRequest(mcpReq);
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

// Elicits, samples, and elicits again: each round asks one question, and its state has the answers so far.
function interviewWithinTheResult({ inputResponses, requestState }) {
    const words = requestState() ? JSON.parse(requestState()) : [];
    const answer = inputResponses?.question;
    if (answer) words.push(answer.content.word ?? answer.content.text);
    const questions = [
        () => inputRequired.elicit(form("First?")),
        () => inputRequired.createMessage(QUESTION),
        () => inputRequired.elicit(form("Second?")),
    ];
    const next = questions[words.length];
    if (!next) return text(words.join("\n"));
    return inputRequired({ inputRequests: { question: next() }, requestState: JSON.stringify(words) });
}

async function interviewByRequest({ send }) {
    const elicit = async (message) =>
        (await send({ method: "elicitation/create", params: form(message) })).content.word;
    const sample = async () => (await send({ method: "sampling/createMessage", params: QUESTION })).content.text;
    return text([await elicit("First?"), await sample(), await elicit("Second?")].join("\n"));
}

function overHttp() {
    const handler = createMcpHandler(build, { legacy: "reject" });
    const sessions = new Map();
    listenToFetch(async (request) => {
        if (strict || !(await isLegacyRequest(request))) return handler.fetch(request);
        const id = request.headers.get("mcp-session-id");
        let transport = sessions.get(id);
        if (id !== null && !transport) {
            const error = { code: -32001, message: "Session not found" };
            return Response.json({ jsonrpc: "2.0", error, id: null }, { status: 404 });
        }
        if (!transport) {
            transport = new WebStandardStreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: (session) => sessions.set(session, transport),
                eventStore: new EventStore(),
            });
            transport.onclose = () => sessions.delete(transport.sessionId);
            await build({ era: "legacy" }).connect(transport);
        }
        return transport.handleRequest(request);
    });
}

switch (process.argv[3]) {
    case undefined:
        serveStdio(build, { legacy: strict ? "reject" : "serve" });
        break;
    case "--http":
        overHttp();
        break;
    default:
        throw new Error(`${process.argv[3]} is not a transport; use --http or nothing`);
}
