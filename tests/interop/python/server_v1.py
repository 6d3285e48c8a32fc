"""A server with a Python SDK of generation 1 (1.0 to 1.30): `server_v1.py [--http | --sse]`.

Offers what README.md describes. Over stdio it ends at the end of its input.
"""

import inspect
import sys
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp.server import Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.shared.session import RequestResponder

from listen import listen, sse_application, streamable_application

STEPS = 20
STEP_SECONDS = 0.05

server = Server("interop-peer")

RELATED = "related_request_id" in inspect.signature(ServerSession.send_progress_notification).parameters
"""Over HTTP a notification goes to the stream of the request that it names."""


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


# Releases up to 1.9 have no elicitation.
ELICITING = []
if hasattr(ServerSession, "elicit"):
    ELICITING = [types.Tool(name="interview", description="Asks several times", inputSchema=schema())]


@server.list_tools()
async def list_tools():
    return [
        types.Tool(name="echo", description="Answers with the text", inputSchema=schema(text={"type": "string"})),
        types.Tool(name="slow", description="Reports progress", inputSchema=schema()),
        types.Tool(name="ask", description="Asks the client", inputSchema=schema()),
        types.Tool(name="note", description="Logs a message", inputSchema=schema()),
        *ELICITING,
    ]


@server.call_tool()
async def call_tool(name, arguments):
    tools = {"echo": echo, "slow": slow, "ask": ask, "note": note, "interview": interview}
    if name not in tools:
        raise ValueError(f"unknown tool: {name}")
    return [types.TextContent(type="text", text=await tools[name](**arguments))]


async def echo(text):
    return text


async def slow():
    context = server.request_context
    token = context.meta.progressToken if context.meta else None
    related = {"related_request_id": str(context.request_id)} if RELATED else {}
    for step in range(1, STEPS + 1):
        await anyio.sleep(STEP_SECONDS)
        if token is not None:
            await context.session.send_progress_notification(token, step, STEPS, **related)
    return "done"


async def ask():
    session, answers = server.request_context.session, []
    if session.check_client_capability(types.ClientCapabilities(roots=types.RootsCapability())):
        answers.append(str((await session.list_roots()).roots[0].uri))
    if session.check_client_capability(types.ClientCapabilities(sampling=types.SamplingCapability())):
        question = types.TextContent(type="text", text="Say something")
        message = types.SamplingMessage(role="user", content=question)
        answers.append((await session.create_message([message], max_tokens=16)).content.text)
    return "\n".join(answers)


async def note():
    await server.request_context.session.send_log_message("info", "noted")
    return "noted"


async def interview():
    """Elicits, samples, and elicits again, each after the answer to the one before."""
    context = server.request_context
    session, words = context.session, []

    async def elicit(message):
        form = schema(word={"type": "string"})
        elicited = await session.elicit(message, form, related_request_id=context.request_id)
        words.append(elicited.content["word"])

    await elicit("First?")
    question = types.TextContent(type="text", text="Say something")
    message = types.SamplingMessage(role="user", content=question)
    words.append((await session.create_message([message], max_tokens=16)).content.text)
    await elicit("Second?")
    return "\n".join(words)


@server.set_logging_level()
async def set_logging_level(level):
    pass


@server.completion()
async def complete(ref, argument, *_):
    return types.Completion(values=[argument.value + "!"])


@server.list_resources()
async def list_resources():
    return [
        types.Resource(uri="interop://greeting", name="greeting", mimeType="text/plain"),
        types.Resource(uri="interop://bytes", name="bytes", mimeType="application/octet-stream"),
    ]


@server.read_resource()
async def read_resource(uri):
    path = str(uri).removeprefix("interop://")
    if path == "greeting":
        return "Hello"
    if path == "bytes":
        # In base64 these need both letters in which its two alphabets differ.
        return b"\xfb\xef\xff"
    if path.startswith("item/"):
        return "item " + path.removeprefix("item/")
    raise ValueError(f"unknown resource: {uri}")


# 1.0.0 has no resources/templates/list.
if hasattr(server, "list_resource_templates"):

    @server.list_resource_templates()
    async def list_resource_templates():
        return [types.ResourceTemplate(uriTemplate="interop://item/{id}", name="item")]


@server.list_prompts()
async def list_prompts():
    argument = types.PromptArgument(name="name", description="Who is greeted", required=True)
    return [types.Prompt(name="greet", description="A greeting", arguments=[argument])]


@server.get_prompt()
async def get_prompt(name, arguments):
    if name != "greet":
        raise ValueError(f"unknown prompt: {name}")
    text = types.TextContent(type="text", text=f"Hello, {arguments['name']}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


def swallow_cancellation():
    """From 1.3 to 1.10 and some later ones, the first cancelled call ends the server: its scope's verdict is dropped."""
    leave = RequestResponder.__exit__

    def leave_quietly(self, *error):
        leave(self, *error)
        return self._cancel_scope.cancelled_caught

    RequestResponder.__exit__ = leave_quietly


@asynccontextmanager
async def without_cancellation(read):
    """Up to 1.2 a `notifications/cancelled` ends the server, because the SDK does not know it: keep it away."""
    writer, filtered = anyio.create_memory_object_stream(0)

    async def pump():
        async with writer:
            async for message in read:
                if getattr(getattr(message, "root", None), "method", None) != "notifications/cancelled":
                    await writer.send(message)

    async with anyio.create_task_group() as group:
        group.start_soon(pump)
        yield filtered


@asynccontextmanager
async def as_it_is(read):
    yield read


async def main(transport=None):
    knows_cancellation = hasattr(RequestResponder, "__exit__")
    if knows_cancellation:
        swallow_cancellation()

    async def run(read, write):
        async with (as_it_is if knows_cancellation else without_cancellation)(read) as messages:
            await server.run(messages, write, server.create_initialization_options())

    match transport:
        case None:
            async with stdio_server() as (read, write):
                await run(read, write)
        case "--http":
            await listen(streamable_application(server))
        case "--sse":
            await listen(sse_application(run))
        case other:
            raise ValueError(f"{other} is not a transport; use --http, --sse or nothing")


anyio.run(main, *sys.argv[1:])
