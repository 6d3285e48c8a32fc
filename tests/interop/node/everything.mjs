// The reference server "everything": `everything.mjs [--http | --sse]`. It offers what it offers; README.md says which steps a
// client takes with it. Over HTTP it prints `listening on http://127.0.0.1:PORT`.

import { createServer, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const TRANSPORTS = { "--http": "streamableHttp", "--sse": "sse" };

function freePort() {
    return new Promise((resolve) => {
        const server = createServer();
        server.listen(0, "127.0.0.1", () => {
            const { port } = server.address();
            server.close(() => resolve(port));
        });
    });
}

function answers(port) {
    return new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1");
        socket.on("connect", () => resolve(socket.destroy() && true));
        socket.on("error", () => resolve(false));
    });
}

const transport = process.argv[2];
if (transport === undefined) {
    process.argv[2] = "stdio";
    await import("@modelcontextprotocol/server-everything/dist/index.js");
} else {
    process.argv[2] = TRANSPORTS[transport];
    const port = await freePort();
    process.env.PORT = String(port);
    // What it tells people must not be taken for the address.
    console.log = console.error;
    await import("@modelcontextprotocol/server-everything/dist/index.js");
    while (!(await answers(port))) await sleep(50);
    process.stdout.write(`listening on http://127.0.0.1:${port}\n`);
}
