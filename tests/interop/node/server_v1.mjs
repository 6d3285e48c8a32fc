// A server with a TypeScript SDK of generation 1 (1.0 to 1.32): `server_v1.mjs [--http | --sse]`.
// Offers what README.md describes. Over stdio it ends at the end of its input.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as schemas from "@modelcontextprotocol/sdk/types.js";
import {
    CallToolRequestSchema,
    CompleteRequestSchema,
    CreateMessageResultSchema,
    GetPromptRequestSchema,
    ListPromptsRequestSchema,
    ListResourcesRequestSchema,
    ListResourceTemplatesRequestSchema,
    ListRootsResultSchema,
    ListToolsRequestSchema,
    ReadResourceRequestSchema,
    SetLevelRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { EventStore, listen } from "./listen.mjs";
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

// Releases up to 1.12 have no elicitation.
const { ElicitResultSchema } = schemas;

function build() {
    const server = new Server(
        { name: "interop-peer", version: "1.0.0" },
        { capabilities: { tools: {}, resources: {}, prompts: {}, logging: {}, completions: {} } },
    );

    server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: ElicitResultSchema ? [...TOOLS, INTERVIEW] : TOOLS }));
    server.setRequestHandler(SetLevelRequestSchema, async () => ({}));
    server.setRequestHandler(CompleteRequestSchema, async ({ params }) => completion(params.argument));
    server.setRequestHandler(ListResourcesRequestSchema, async () => ({ resources: RESOURCES }));
    server.setRequestHandler(ListResourceTemplatesRequestSchema, async () => ({ resourceTemplates: TEMPLATES }));
    server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) => ({ contents: [contents(params.uri)] }));
    server.setRequestHandler(ListPromptsRequestSchema, async () => ({ prompts: PROMPTS }));
    server.setRequestHandler(GetPromptRequestSchema, async ({ params }) => prompt(params.name, params.arguments));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
        switch (params.name) {
            case "echo":
                return text(params.arguments.text);
            case "slow":
                return slow(server, params._meta?.progressToken, extra);
            case "ask":
                return ask(server, extra);
            case "note":
                return note(server, extra);
            case "interview":
                return interview(extra);
            default:
                throw new Error(`unknown tool: ${params.name}`);
        }
    });
    return server;
}

// Over HTTP what belongs to a request goes through `extra`, so that it takes the stream of the request. Before 1.10 there is
// one stream.
async function slow(server, progressToken, { signal, sendNotification }) {
    const notify = sendNotification ?? ((notification) => server.notification(notification));
    for (let progress = 1; progress <= STEPS; progress += 1) {
        await sleep(STEP, undefined, { signal });
        if (progressToken !== undefined) {
            await notify({
                method: "notifications/progress",
                params: { progressToken, progress, total: STEPS },
            });
        }
    }
    return text("done");
}

async function ask(server, { sendRequest }) {
    const { roots, sampling } = server.getClientCapabilities() ?? {};
    const send = sendRequest ?? ((request, schema) => server.request(request, schema));
    const answers = [];
    if (roots) answers.push((await send({ method: "roots/list" }, ListRootsResultSchema)).roots[0].uri);
    if (sampling) {
        const request = { method: "sampling/createMessage", params: QUESTION };
        answers.push((await send(request, CreateMessageResultSchema)).content.text);
    }
    return text(answers.join("\n"));
}

async function note(server, { sendNotification }) {
    const notify = sendNotification ?? ((notification) => server.notification(notification));
    await notify({ method: "notifications/message", params: { level: "info", data: "noted" } });
    return text("noted");
}

// Elicits, samples, and elicits again, each after the answer to the one before.
async function interview({ sendRequest }) {
    const elicit = async (message) => {
        const request = { method: "elicitation/create", params: form(message) };
        return (await sendRequest(request, ElicitResultSchema)).content.word;
    };
    const sample = async () => {
        const request = { method: "sampling/createMessage", params: QUESTION };
        return (await sendRequest(request, CreateMessageResultSchema)).content.text;
    };
    return text([await elicit("First?"), await sample(), await elicit("Second?")].join("\n"));
}

async function overHttp() {
    const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
    const sessions = new Map();
    listen(async (request, response) => {
        const id = request.headers["mcp-session-id"];
        let transport = sessions.get(id);
        if (id !== undefined && !transport) {
            response.writeHead(404, { "content-type": "application/json" });
            const error = { code: -32001, message: "Session not found" };
            return response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
        }
        if (!transport) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                onsessioninitialized: (session) => sessions.set(session, transport),
                eventStore: new EventStore(),
            });
            transport.onclose = () => sessions.delete(transport.sessionId);
            await build().connect(transport);
        }
        await transport.handleRequest(request, response);
    });
}

async function overSse() {
    const { SSEServerTransport } = await import("@modelcontextprotocol/sdk/server/sse.js");
    const sessions = new Map();
    listen(async (request, response) => {
        const url = new URL(request.url, "http://localhost");
        if (request.method === "GET" && url.pathname === "/sse") {
            const transport = new SSEServerTransport("/messages", response);
            sessions.set(transport.sessionId, transport);
            response.on("close", () => sessions.delete(transport.sessionId));
            return build().connect(transport);
        }
        const transport = sessions.get(url.searchParams.get("sessionId"));
        if (request.method === "POST" && transport) return transport.handlePostMessage(request, response);
        response.writeHead(404).end("no such session");
    });
}

switch (process.argv[2]) {
    case undefined:
        await build().connect(new StdioServerTransport());
        break;
    case "--http":
        await overHttp();
        break;
    case "--sse":
        await overSse();
        break;
    default:
        throw new Error(`${process.argv[2]} is not a transport; use --http, --sse or nothing`);
}
