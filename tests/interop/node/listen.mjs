// Listens for HTTP on a free port and prints `listening on http://127.0.0.1:PORT`; a store of events for resumable streams.

import { createServer } from "node:http";
import { Readable } from "node:stream";

// `handle(request, response)` is called with node's own objects.
export function listen(handle) {
    const server = createServer((request, response) => {
        Promise.resolve(handle(request, response)).catch((error) => {
            console.error(error);
            if (!response.headersSent) response.writeHead(500);
            response.end();
        });
    });
    server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
}

// `handle(request)` takes a Request of the Fetch standard and returns a Response.
export function listenToFetch(handle) {
    listen(async (incoming, outgoing) => {
        const gone = new AbortController();
        outgoing.on("close", () => gone.abort());
        const hasBody = !["GET", "HEAD"].includes(incoming.method);
        const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
            method: incoming.method,
            headers: Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
            body: hasBody ? Readable.toWeb(incoming) : undefined,
            duplex: "half",
            signal: gone.signal,
        });
        const response = await handle(request);
        outgoing.writeHead(response.status, Object.fromEntries(response.headers));
        outgoing.flushHeaders();
        if (!response.body) return outgoing.end();
        const body = Readable.fromWeb(response.body);
        body.on("error", () => outgoing.destroy());
        outgoing.on("close", () => body.destroy());
        body.pipe(outgoing);
    });
}

// The events of one session, in memory.
export class EventStore {
    events = [];

    async storeEvent(stream, message) {
        this.events.push({ stream, message });
        return String(this.events.length);
    }

    async getStreamIdForEventId(event) {
        return this.events[Number(event) - 1]?.stream;
    }

    async replayEventsAfter(last, { send }) {
        const stream = await this.getStreamIdForEventId(last);
        for (let number = Number(last) + 1; number <= this.events.length; number += 1) {
            const event = this.events[number - 1];
            // An event without a message says where a stream begins.
            if (event.stream === stream && event.message.jsonrpc) await send(String(number), event.message);
        }
        return stream;
    }
}
