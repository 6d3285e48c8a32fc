// A client with a TypeScript SDK of generation 1 (1.0 to 1.32): `client_v1.mjs COMMAND…` starts a stdio server and uses it;
// `client_v1.mjs --http URL` and `client_v1.mjs --sse URL` connect to one.
// Prints the steps that README.md describes; never looks at what the server is written with.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import * as schemas from "@modelcontextprotocol/sdk/types.js";
import {
    CallToolResultSchema,
    CreateMessageRequestSchema,
    InitializeResultSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { describe, ROOT, SAMPLED, Steps, use } from "./steps.mjs";

// Releases up to 1.12 have no elicitation.
const { ElicitRequestSchema } = schemas;

const [command, ...args] = process.argv.slice(2);
const client = new Client(
    { name: "interop-peer", version: "1.0.0" },
    { capabilities: { sampling: {}, roots: {}, ...(ElicitRequestSchema && { elicitation: {} }) } },
);
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: ROOT }] }));
client.setRequestHandler(CreateMessageRequestSchema, async () => ({
    role: "assistant",
    content: { type: "text", text: SAMPLED },
    model: "none",
}));

if (ElicitRequestSchema) {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => ({
        action: "accept",
        content: { word: params.message },
    }));
}
const logged = new Promise((resolve) => {
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
        if (params.data === "noted") resolve();
    });
});

async function note() {
    await client.setLoggingLevel("info");
    await client.callTool({ name: "note", arguments: {} });
    await logged;
    return "arrived";
}

// The SDK keeps the revision that was negotiated to itself: look at the answer of `initialize` as it passes.
let revision = null;
const request = client.request.bind(client);
client.request = async (message, schema, options) => {
    const result = await request(message, schema, options);
    if (schema === InitializeResultSchema) revision = result.protocolVersion;
    return result;
};

const slow = (options) => client.callTool({ name: "slow", arguments: {} }, CallToolResultSchema, options);

// Early releases do not have every transport.
async function transport() {
    if (command === "--http") {
        const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
        return new StreamableHTTPClientTransport(new URL(args[0]));
    }
    if (command === "--sse") {
        const { SSEClientTransport } = await import("@modelcontextprotocol/sdk/client/sse.js");
        return new SSEClientTransport(new URL(args[0]));
    }
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return new StdioClientTransport({ command, args });
}

const steps = new Steps();
try {
    await client.connect(await transport());
    steps.report("connect", true, client.getServerVersion().name);
    await steps.run("ping", async () => {
        await client.ping();
        return "answered";
    });
    await use(steps, client, slow, { elicits: Boolean(ElicitRequestSchema), note });
    await client.close();
    steps.report("shutdown", true, "closed");
} catch (error) {
    steps.report(revision ? "shutdown" : "connect", false, describe(error));
}
steps.finish(revision);
