"""Serves a Python SDK's low-level server over HTTP: Streamable HTTP at /mcp, or HTTP+SSE at /sse.

Takes a free port and prints `listening on http://127.0.0.1:PORT`. Streams can be resumed.
"""

import contextlib
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route


def event_store():
    """A store of the SDK's kind, in memory."""
    from mcp.server.streamable_http import EventMessage, EventStore

    class Store(EventStore):
        def __init__(self):
            self.events = []

        async def store_event(self, stream_id, message):
            self.events.append((stream_id, message))
            return str(len(self.events))

        async def replay_events_after(self, last_event_id, send_callback):
            last = int(last_event_id)
            stream = self.events[last - 1][0]
            number = last
            # Events arrive while others are sent. The SDK sends by itself what comes after this has returned.
            while number < len(self.events):
                of, message = self.events[number]
                number += 1
                # An event without a message says where a stream begins.
                if of == stream and message is not None:
                    await send_callback(EventMessage(message, str(number)))
            return stream

    return Store()


def streamable_application(server):
    """An application that serves Streamable HTTP with sessions."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    manager = StreamableHTTPSessionManager(app=server, event_store=event_store())

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with manager.run():
            yield

    application = Starlette(lifespan=lifespan)

    async def serve(scope, receive, send):
        # Not mounted: a mount would answer `/mcp` with a redirect to `/mcp/`.
        if scope["type"] == "http" and scope["path"] == "/mcp":
            await manager.handle_request(scope, receive, send)
        else:
            await application(scope, receive, send)

    return serve


def sse_application(run):
    """An application that serves HTTP+SSE; `run` serves one connection."""
    from mcp.server.sse import SseServerTransport

    transport = SseServerTransport("/messages/")

    async def connect(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await run(read, write)
        return Response()

    routes = [Route("/sse", endpoint=connect), Mount("/messages/", app=transport.handle_post_message)]
    return Starlette(routes=routes)


async def listen(application):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(application, log_level="warning")
    await uvicorn.Server(config).serve(sockets=[listener])
