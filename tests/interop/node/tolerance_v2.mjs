// A client with a TypeScript SDK of generation 2 in front of an untidy server: `tolerance_v2.mjs METHOD COMMAND…` starts a
// stdio server, `tolerance_v2.mjs METHOD --http URL` connects to one.
// Does what METHOD is about, and prints one line of JSON: what it delivers to its program, or the error.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [method, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "interop-peer", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
const transport =
    command === "--http" ? new StreamableHTTPClientTransport(new URL(args[0])) : new StdioClientTransport({ command, args });

const names = (list) => list.map(({ name }) => name).join(", ");
const texts = (contents) => contents.map(({ text }) => text).join("\n");
const uses = {
    "tools/list": async () => names((await client.listTools()).tools),
    "prompts/list": async () => names((await client.listPrompts()).prompts),
    "resources/list": async () => names((await client.listResources()).resources),
    "resources/templates/list": async () => names((await client.listResourceTemplates()).resourceTemplates),
    "tools/call": async () => texts((await client.callTool({ name: "echo", arguments: {} })).content),
    "prompts/get": async () => texts((await client.getPrompt({ name: "greet" })).messages.map(({ content }) => content)),
    "resources/read": async () => texts((await client.readResource({ uri: "zoo://a" })).contents),
    initialize: async () => JSON.stringify(client.getServerCapabilities()),
};

let line;
try {
    await client.connect(transport);
    line = { delivered: await uses[method]() };
} catch (error) {
    line = { error: `${error.name}: ${error.message}`.split("\n")[0] };
}
// Half of a surrogate pair is no text that JSON can hold.
const escaped = (text) => text.replace(/\p{Surrogate}/gu, (half) => `\\u${half.charCodeAt(0).toString(16)}`);
console.log(JSON.stringify(Object.fromEntries(Object.entries(line).map(([name, text]) => [name, escaped(text)]))));
await client.close().catch(() => {});
process.exit(0);
