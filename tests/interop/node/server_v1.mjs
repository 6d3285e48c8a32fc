// A stdio server with a TypeScript SDK of generation 1 (1.0 to 1.32).
// Offers what README.md describes; takes no arguments, ends at the end of its input.

import { setTimeout as sleep } from "node:timers/promises";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import {
    CallToolRequestSchema,
    GetPromptRequestSchema,
    ListPromptsRequestSchema,
    ListResourcesRequestSchema,
    ListResourceTemplatesRequestSchema,
    ListToolsRequestSchema,
    ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

import { contents, prompt, PROMPTS, QUESTION, RESOURCES, STEP, STEPS, TEMPLATES, text, TOOLS } from "./offer.mjs";

const server = new Server(
    { name: "interop-peer", version: "1.0.0" },
    { capabilities: { tools: {}, resources: {}, prompts: {} } },
);

server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: TOOLS }));
server.setRequestHandler(ListResourcesRequestSchema, async () => ({ resources: RESOURCES }));
server.setRequestHandler(ListResourceTemplatesRequestSchema, async () => ({ resourceTemplates: TEMPLATES }));
server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) => ({ contents: [contents(params.uri)] }));
server.setRequestHandler(ListPromptsRequestSchema, async () => ({ prompts: PROMPTS }));
server.setRequestHandler(GetPromptRequestSchema, async ({ params }) => prompt(params.name, params.arguments));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    switch (params.name) {
        case "echo":
            return text(params.arguments.text);
        case "slow":
            return slow(params._meta?.progressToken, signal);
        case "ask":
            return ask();
        default:
            throw new Error(`unknown tool: ${params.name}`);
    }
});

async function slow(progressToken, signal) {
    for (let progress = 1; progress <= STEPS; progress += 1) {
        await sleep(STEP, undefined, { signal });
        if (progressToken !== undefined) {
            await server.notification({
                method: "notifications/progress",
                params: { progressToken, progress, total: STEPS },
            });
        }
    }
    return text("done");
}

async function ask() {
    const { roots, sampling } = server.getClientCapabilities() ?? {};
    const answers = [];
    if (roots) answers.push((await server.listRoots()).roots[0].uri);
    if (sampling) answers.push((await server.createMessage(QUESTION)).content.text);
    return text(answers.join("\n"));
}

await server.connect(new StdioServerTransport());
