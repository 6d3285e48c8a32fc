// Skills (SEP-2640) with a TypeScript SDK of generation 2: `skills_v2.mjs serve FOLDER` is a server of the skills in a folder, over
// Streamable HTTP on a free port; `skills_v2.mjs read URL` verifies each file of each skill of a server, and prints a line
// `{"file": URI, "sha256": DIGEST}` for it.

import { createHash } from "node:crypto";

async function serve(folder) {
    const { createMcpHandler, McpServer } = await import("@modelcontextprotocol/server");
    const { loadSkills } = await import("@modelcontextprotocol/server/ext/skills/node");
    const { listenToFetch } = await import("./listen.mjs");
    const skills = await loadSkills(folder, { strict: true });
    const handler = createMcpHandler(() => {
        const server = new McpServer({ name: "interop-peer", version: "1.0.0" });
        skills.attach(server);
        return server;
    });
    listenToFetch((request) => handler.fetch(request));
}

async function read(url) {
    const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const { SkillsClient } = await import("@modelcontextprotocol/client/ext/skills");
    const client = new Client(
        { name: "interop-peer", version: "1.0.0" },
        { versionNegotiation: { mode: "auto" } },
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const reader = new SkillsClient(client);
    for (const skill of (await reader.list()).skills) {
        for (const { uri } of skill.resources) {
            const { bytes, verified } = await reader.read(skill, uri);
            if (!verified) throw new Error(`${uri} was not verified`);
            console.log(JSON.stringify({ file: uri, sha256: createHash("sha256").update(bytes).digest("hex") }));
        }
    }
    await client.close();
}

const [what, of] = process.argv.slice(2);
switch (what) {
    case "serve":
        await serve(of);
        break;
    case "read":
        await read(of);
        break;
    default:
        throw new Error(`${what}: give \`serve FOLDER\` or \`read URL\``);
}
