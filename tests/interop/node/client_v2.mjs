// A client with a TypeScript SDK of generation 2: `client_v2.mjs MODE COMMAND…` starts a stdio server and uses it;
// `client_v2.mjs MODE --http URL` and `client_v2.mjs MODE --sse URL` connect to one.
// MODE is `auto` (probe, else handshake), `legacy` (handshake only) or a revision without handshake.
// Prints the steps that README.md describes; never looks at what the server is written with.

import { Client, LOG_LEVEL_META_KEY, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { describe, ROOT, SAMPLED, Steps, use } from "./steps.mjs";

const [mode, command, ...args] = process.argv.slice(2);
const client = new Client(
    { name: "interop-peer", version: "1.0.0" },
    {
        capabilities: { sampling: {}, roots: {}, elicitation: {} },
        versionNegotiation: { mode: ["auto", "legacy"].includes(mode) ? mode : { pin: mode } },
    },
);
client.setRequestHandler("roots/list", async () => ({ roots: [{ uri: ROOT }] }));
client.setRequestHandler("sampling/createMessage", async () => ({
    role: "assistant",
    content: { type: "text", text: SAMPLED },
    model: "none",
}));

client.setRequestHandler("elicitation/create", async ({ params }) => ({
    action: "accept",
    content: { word: params.message },
}));
const logged = new Promise((resolve) => {
    client.setNotificationHandler("notifications/message", ({ params }) => {
        if (params.data === "noted") resolve();
    });
});

// Since 2026-07-28 the level goes with each request.
async function note() {
    const isLegacy = client.getProtocolEra() === "legacy";
    if (isLegacy) await client.setLoggingLevel("info");
    const _meta = isLegacy ? {} : { [LOG_LEVEL_META_KEY]: "info" };
    await client.callTool({ name: "note", arguments: {}, _meta });
    await logged;
    return "arrived";
}

const slow = (options) => client.callTool({ name: "slow", arguments: {} }, options);

function transport() {
    if (command === "--http") return new StreamableHTTPClientTransport(new URL(args[0]));
    if (command === "--sse") return new SSEClientTransport(new URL(args[0]));
    return new StdioClientTransport({ command, args });
}

const steps = new Steps();
let revision = null;
try {
    await client.connect(transport());
    revision = client.getNegotiatedProtocolVersion();
    steps.report("connect", true, client.getServerVersion()?.name ?? null);
    if (client.getProtocolEra() === "legacy") {
        await steps.run("ping", async () => {
            await client.ping();
            return "answered";
        });
    }
    await use(steps, client, slow, { elicits: true, note });
    await client.close();
    steps.report("shutdown", true, "closed");
} catch (error) {
    steps.report(revision ? "shutdown" : "connect", false, describe(error));
}
steps.finish(revision);
