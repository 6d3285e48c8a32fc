// A host in a browser, with the official library: shows a page of each server, in each revision, uses it as a person does, and writes
// down what holds.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
    AppBridge, PostMessageTransport, RESOURCE_MIME_TYPE, buildAllowAttribute, getToolUiResourceUri, isToolVisibilityAppOnly,
    isToolVisibilityModelOnly,
} from "@modelcontextprotocol/ext-apps/app-bridge";

const INFO = { name: "browser-host", version: "1.0.0" };
const EXTENSIONS = { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } };
const SANDBOX_READY = "ui/notifications/sandbox-proxy-ready";

/** Fails unless a promise is settled in time. */
const within = (what, promise) => {
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`${what}: too late`)), 10_000); });
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** Resolves with the params of the next message of a frame with this method. */
const next = (frame, method) => new Promise(resolve => {
    const listener = ({ source, data }) => {
        if (source !== frame.contentWindow || data?.method !== method) return;
        removeEventListener("message", listener);
        resolve(data.params);
    };
    addEventListener("message", listener);
});

/** Asks the sandbox for something about the page. */
async function ask(frame, origin, method, params = {}) {
    const text = next(frame, "ui/notifications/sandbox-text");
    frame.contentWindow.postMessage({ jsonrpc: "2.0", method: `ui/notifications/sandbox-${method}`, params }, origin);
    return (await within(method, text)).text;
}

/** Waits until the text of the page matches, and is not what it was before. */
async function until(frame, origin, pattern, before) {
    for (let round = 0; ; round++) {
        const text = await ask(frame, origin, "look");
        if (text !== before && new RegExp(pattern).test(text)) return text;
        if (round === 100) throw new Error(`the page does not show ${pattern}, but: ${text}`);
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

/** Connects to the server of a case, in its revision. */
async function connect({ path, revision }) {
    const mode = revision === "2026-07-28" ? { pin: revision } : "legacy";
    const client = new Client(INFO, { capabilities: { extensions: EXTENSIONS }, versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(path, location.href)));
    return client;
}

/** Shows the page of a tool; returns its frame, the bridge, and what the page has asked of the host. */
async function show(section, client, tool, { arguments: given, at }, sandbox, check) {
    const uri = getToolUiResourceUri(tool);
    const { contents } = await client.readResource({ uri });
    check("the page is one resource with the media type of pages", contents.length === 1 && contents[0].mimeType === RESOURCE_MIME_TYPE);
    const [{ text, _meta }] = contents;
    const { permissions } = _meta?.ui ?? {};
    const frame = section.appendChild(document.createElement("iframe"));
    frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms");
    const ready = next(frame, SANDBOX_READY);
    frame.src = `${sandbox}/sandbox.html?case=${at}`;
    await within("sandbox", ready);

    const seen = { context: [], sizes: [] };
    const bridge = new AppBridge(client, INFO, { serverTools: {}, serverResources: {}, updateModelContext: { text: {} } },
        { hostContext: { theme: "light", displayMode: "inline" } });
    bridge.onupdatemodelcontext = async params => { seen.context.push(params); return {}; };
    bridge.onsizechange = params => { seen.sizes.push(params); };
    const initialized = new Promise(resolve => { bridge.oninitialized = resolve; });
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.contentWindow.postMessage({
        jsonrpc: "2.0", method: "ui/notifications/sandbox-resource-ready", params: { html: text, allow: buildAllowAttribute(permissions) },
    }, sandbox);
    await within("ui/initialize", initialized);
    await bridge.sendToolInput({ arguments: given });
    const result = await client.callTool({ name: tool.name, arguments: given });
    await bridge.sendToolResult(result);
    return { frame, bridge, seen, result };
}

/** Uses one server in one revision. */
async function use(one, sandbox, elsewhere) {
    const section = document.body.appendChild(document.createElement("section"));
    section.appendChild(document.createElement("h2")).textContent = `${one.name}, ${one.revision}`;
    const list = document.createElement("ul");
    const results = [];
    const check = (name, holds, detail = "") => {
        results.push({ case: `${one.name}, ${one.revision}`, name, ok: Boolean(holds), detail: holds ? "" : String(detail) });
        const line = list.appendChild(document.createElement("li"));
        line.textContent = holds ? name : `${name}: ${detail}`;
        line.className = holds ? "" : "failed";
    };
    let client;
    try {
        client = await connect(one);
        check("the revision is negotiated", client.getNegotiatedProtocolVersion() === one.revision, client.getNegotiatedProtocolVersion());
        const { tools } = await client.listTools();
        const tool = tools.find(({ name }) => name === one.tool);
        check("the tool has a page, and is for the model", tool && getToolUiResourceUri(tool) && !isToolVisibilityAppOnly(tool));
        const hidden = tools.filter(isToolVisibilityAppOnly).map(({ name }) => name);
        check("tools for pages are known", String(hidden) === String(one.hidden), hidden);
        check("no tool is for the model alone", !tools.some(isToolVisibilityModelOnly));
        const { frame, bridge, seen, result } = await show(section, client, tool, one, sandbox, check);
        if (one.says) {
            const [{ text }] = result.content;
            check("the server knows that the host shows pages", text.startsWith(one.says), text);
        }
        const before = await until(frame, sandbox, one.before);
        check("the page shows the result", before);
        const refused = await ask(frame, sandbox, "connect", { url: elsewhere });
        check("the page cannot connect to another host", refused === "refused" && reachable, refused);
        frame.contentWindow.postMessage({
            jsonrpc: "2.0", method: "ui/notifications/sandbox-click", params: { selector: one.button },
        }, sandbox);
        check("a click calls a tool and shows its result", await until(frame, sandbox, one.after, before));
        check("the page tells its size", seen.sizes.some(({ height }) => height > 0), JSON.stringify(seen.sizes));
        if (one.context) {
            const context = JSON.stringify(seen.context);
            check("the page tells the model", context.includes(one.context), context);
        }
        check("the page ends when it is asked to", await within("teardown", bridge.teardownResource({})));
    } catch (error) {
        check("nothing fails", false, error?.stack ?? error);
    }
    section.append(list);
    await client?.close().catch(() => {});
    return results;
}

const { cases, sandbox, elsewhere } = await (await fetch("/cases")).json();
// What a page may not reach is there: the host reaches it.
const reachable = await fetch(elsewhere, { mode: "no-cors" }).then(() => true, () => false);
const results = [];
for (const one of cases) results.push(...await use(one, sandbox, elsewhere));
await fetch("/results", { method: "POST", body: JSON.stringify(results) });
