// Opens a host with the official library in headless Chromium, and prints what holds there, a line for each check.
// `host.mjs NPM_FOLDER PICTURE CASES` needs the folder of the installed packages, the file of the screenshot, and the cases as JSON:
// name, url of the server, revision, policy of the page, and what is used. Ends with 1 if a check fails.

import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";

const [npm, picture, given] = process.argv.slice(2);
const here = path.dirname(new URL(import.meta.url).pathname);
const targets = JSON.parse(given);
const modules = path.join(npm, "node_modules");

// What the page imports, by the files of the packages; the browser resolves no names by itself.
const PACKAGES = {
    "@modelcontextprotocol/client": "@modelcontextprotocol/client/dist/index.mjs",
    "@modelcontextprotocol/client/_shims": "@modelcontextprotocol/client/dist/shimsBrowser.mjs",
    "@modelcontextprotocol/core": "@modelcontextprotocol/core/dist/index.mjs",
    "@modelcontextprotocol/core/internal": "@modelcontextprotocol/core/dist/internal.mjs",
    "@modelcontextprotocol/ext-apps/app-bridge": "@modelcontextprotocol/ext-apps/dist/src/app-bridge.js",
    "eventsource": "eventsource/dist/index.js",
    "eventsource-parser": "eventsource-parser/dist/index.js",
    "eventsource-parser/stream": "eventsource-parser/dist/stream.js",
    "jose": "jose/dist/webapi/index.js",
    "pkce-challenge": "pkce-challenge/dist/index.browser.js",
    "zod": "zod/index.js",
    "zod/v4": "zod/v4/index.js",
    "zod/v4/core": "zod/v4/core/index.js",
};
const imports = Object.fromEntries(Object.entries(PACKAGES).map(([name, file]) => [name, `/npm/${file}`]));

const send = (response, type, body, headers = {}) => {
    response.writeHead(200, { "Content-Type": type, ...headers });
    response.end(body);
};
const body = async request => {
    const parts = [];
    for await (const part of request) parts.push(part);
    return Buffer.concat(parts);
};
const listen = handle => new Promise(resolve => {
    const server = http.createServer((request, response) => {
        handle(request, response).catch(error => { response.writeHead(404); response.end(String(error)); });
    });
    server.listen(0, "127.0.0.1", () => resolve(server));
});
const origin = (server, host) => `http://${host}:${server.address().port}`;

/** Relays a request to a server. The page is of another origin, which the server would have to allow. */
function relay(request, response, url) {
    const { origin: _origin, referer: _referer, host: _host, ...headers } = request.headers;
    const upstream = http.request(url, { method: request.method, headers }, answer => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
    });
    upstream.on("error", error => { response.destroy(error); });
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
}

const elsewhere = await listen(async (_, response) => send(response, "text/plain", "elsewhere"));
const sandbox = await listen(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://sandbox");
    if (pathname !== "/sandbox.html") throw new Error("no such file");
    // The policy that our host has made of the settings of the page.
    const { policy } = targets[Number(searchParams.get("case"))];
    send(response, "text/html", await readFile(path.join(here, "sandbox.html")), { "Content-Security-Policy": policy });
});
const cases = targets.map(({ url: _, ...one }, at) => ({ ...one, at, path: `/server/${at}` }));
let finish;
const finished = new Promise(resolve => { finish = resolve; });
const host = await listen(async (request, response) => {
    const { pathname } = new URL(request.url, "http://host");
    const [, first, ...rest] = pathname.split("/");
    if (first === "server") return relay(request, response, targets[Number(rest[0])].url);
    if (first === "npm") {
        const file = path.join(modules, ...rest);
        if (!file.startsWith(modules + path.sep)) throw new Error("no such file");
        return send(response, "text/javascript", await readFile(file));
    }
    if (pathname === "/cases") {
        const answer = { cases, sandbox: origin(sandbox, "127.0.0.1"), elsewhere: origin(elsewhere, "127.0.0.1") };
        return send(response, "application/json", JSON.stringify(answer));
    }
    if (pathname === "/results") {
        finish(JSON.parse(await body(request)));
        return send(response, "text/plain", "");
    }
    if (pathname === "/page.js") return send(response, "text/javascript", await readFile(path.join(here, "page.js")));
    const page = await readFile(path.join(here, "page.html"), "utf8");
    return send(response, "text/html", page.replace("IMPORT_MAP", JSON.stringify({ imports })));
});

/** Chromium, driven by its protocol over two pipes. */
class Chromium {
    constructor(profile) {
        this.child = spawn("chromium", [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank",
        ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
        this.failed = new Promise((_, reject) => {
            this.child.on("error", () => reject(new Error("cannot run chromium; install the Debian package `chromium`")));
            this.child.on("exit", code => reject(new Error(`chromium ended with ${code}`)));
        });
        this.failed.catch(() => {});
        this.pending = new Map();
        this.logs = [];
        let rest = "";
        this.child.stdio[4].on("data", chunk => {
            const messages = (rest + chunk).split("\0");
            rest = messages.pop();
            messages.map(JSON.parse).forEach(message => this.receive(message));
        });
    }
    receive({ id, result, error, method, params }) {
        // Frames of other sites are targets of their own.
        if (method === "Target.attachedToTarget") this.call("Runtime.enable", {}, params.sessionId).catch(() => {});
        if (method === "Runtime.exceptionThrown") this.logs.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
        if (method === "Runtime.consoleAPICalled") this.logs.push(params.args.map(({ value, description }) => value ?? description).join(" "));
        if (method === "Log.entryAdded") this.logs.push(`${params.entry.text} ${params.entry.url ?? ""}`);
        const waiting = this.pending.get(id);
        this.pending.delete(id);
        if (error) waiting?.reject(new Error(error.message));
        else waiting?.resolve(result);
    }
    call(method, params = {}, sessionId) {
        const id = this.pending.size + 1 + (this.last = (this.last ?? 0) + 1) * 1000;
        const answer = new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
        this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
        return Promise.race([answer, this.failed]);
    }
}

const profile = path.join(path.dirname(picture), "profile");
const chromium = new Chromium(profile);
let failed = 1;
try {
    const { targetId } = await chromium.call("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await chromium.call("Target.attachToTarget", { targetId, flatten: true });
    const page = (method, params) => chromium.call(method, params, sessionId);
    await page("Runtime.enable");
    await page("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
    await page("Log.enable");
    await page("Page.enable");
    // All pages fit, because a screenshot beyond the window changes the layout of frames.
    await page("Emulation.setDeviceMetricsOverride", { width: 1180, height: 140 + 205 * cases.length, deviceScaleFactor: 1, mobile: false });
    // Another name of this machine, so that host and sandbox are of different sites too.
    await page("Page.navigate", { url: `${origin(host, "localhost")}/` });
    let timer;
    const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("the page did not run to its end")), 60_000); });
    const results = await Promise.race([finished, late, chromium.failed]);
    clearTimeout(timer);
    const { data } = await page("Page.captureScreenshot", { format: "png" });
    await writeFile(picture, Buffer.from(data, "base64"));
    for (const { case: name, name: check, ok, detail } of results) console.log(`${ok ? "ok" : "FAIL"} ${name}: ${check}${ok ? "" : `: ${detail}`}`);
    failed = results.length === 0 || results.some(({ ok }) => !ok) ? 1 : 0;
} catch (error) {
    console.log(`FAIL ${error.message}`);
}
if (failed) chromium.logs.forEach(line => console.error(line));
chromium.child.kill("SIGKILL");
process.exit(failed);
