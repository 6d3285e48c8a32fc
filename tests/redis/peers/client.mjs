// A client with a TypeScript SDK of generation 1: `node client.mjs SDK URL [sse]`. Uses a server, and prints the processes that have answered
// and the revision.
import { createRequire } from "node:module";

const [folder, url, kind] = process.argv.slice(2);
const require = createRequire(`${folder}/package.json`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");
const connect = () => {
    if (kind === "sse") return new SSEClientTransport(new URL(url));
    const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return new StreamableHTTPClientTransport(new URL(url));
};
const { InitializeResultSchema, ListRootsRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const client = new Client({ name: "peer", version: "1.0.0" }, { capabilities: { roots: {} } });
client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///peer" }] }));
let revision;
const request = client.request.bind(client);
client.request = async (message, schema, options) => {
    const result = await request(message, schema, options);
    if (schema === InitializeResultSchema) revision = result.protocolVersion;
    return result;
};
await client.connect(connect());

const call = async (name, text, options) => {
    const result = await client.callTool({ name, arguments: { text } }, undefined, options);
    return result.content[0].text;
};
const processes = new Set();
for (let number = 0; number < 12; number += 1) {
    processes.add(await call("pid", ""));
    const steps = [];
    const token = `work-${number}`;
    const done = await call("work", token, { onprogress: ({ progress }) => steps.push(progress) });
    if (done !== token || steps.join() !== "1,2,3,4,5,6") throw new Error(`${token}: ${done} after ${steps}`);
    const roots = await call("ask", "");
    if (!roots.includes("file:///peer")) throw new Error(`no answer in ${roots}`);
}
console.log(processes.size, revision);
await client.close();
process.exit(0);
