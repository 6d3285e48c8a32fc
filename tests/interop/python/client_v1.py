"""A client with a Python SDK of generation 1 (1.0 to 1.30): `client_v1.py COMMAND…` starts a stdio server and uses it;
`client_v1.py --http URL` and `client_v1.py --sse URL` connect to one.

Prints the steps that README.md describes; never looks at what the server is written with.
"""

import inspect
import sys
from contextlib import asynccontextmanager

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl
from steps import ROOT, SAMPLED, Steps, expect, increasing

CALLBACKS = "sampling_callback" in inspect.signature(ClientSession).parameters
"""Up to 1.2 what the server sends comes as a stream that the program must read, or the session stands still."""

ELICITS = "elicitation_callback" in inspect.signature(ClientSession).parameters

PROGRESS = "progress_callback" in inspect.signature(ClientSession.send_request).parameters
"""Before 1.9 the program chooses the progress token itself."""


async def sample(*_):
    content = types.TextContent(type="text", text=SAMPLED)
    return types.CreateMessageResult(role="assistant", content=content, model="none", stopReason="endTurn")


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={"word": params.message})


async def roots(*_):
    return types.ListRootsResult(roots=[types.Root(uri=ROOT)])


class Client:
    """A session, and what arrived beside the answers."""

    def __init__(self, streams):
        self.listeners = {}
        self.tools = []
        self.logged = anyio.Event()
        handlers = {}
        if CALLBACKS:
            handlers = {
                "sampling_callback": sample,
                "list_roots_callback": roots,
                "message_handler": self.incoming,
            }
        if ELICITS:
            handlers["elicitation_callback"] = elicit
        self.session = ClientSession(*streams, **handlers)

    async def read(self):
        async for message in self.session.incoming_messages:
            await self.incoming(message)

    async def incoming(self, message):
        request = getattr(getattr(message, "request", None), "root", None)
        if not CALLBACKS and isinstance(request, types.ListRootsRequest):
            await message.respond(types.ClientResult(await roots()))
        notification = getattr(message, "root", None)
        if isinstance(notification, types.LoggingMessageNotification) and notification.params.data == "noted":
            self.logged.set()
        if isinstance(notification, types.ProgressNotification):
            listener = self.listeners.get(notification.params.progressToken)
            if listener:
                await listener(notification.params.progress)

    async def slow(self, listener):
        """Calls the slow tool and hands each progress value to the listener."""
        parameters = {"name": "slow", "arguments": {}}
        options = {}
        if PROGRESS:

            async def progressed(progress, total, message):
                await listener(progress)

            options["progress_callback"] = progressed
        else:
            token = f"slow-{len(self.listeners)}"
            self.listeners[token] = listener
            parameters["_meta"] = {"progressToken": token}
        request = types.CallToolRequest(method="tools/call", params=types.CallToolRequestParams(**parameters))
        return await self.session.send_request(types.ClientRequest(request), types.CallToolResult, **options)

    async def list_tools(self):
        names = [tool.name for tool in (await self.session.list_tools()).tools]
        expect({"echo", "slow", "ask"} <= set(names), f"a tool is missing: {names}")
        self.tools = names
        return names

    async def call(self, name, arguments):
        result = await self.session.call_tool(name, arguments)
        expect(not result.isError, f"the tool failed: {result.content}")
        return result.content[0].text

    async def echo(self):
        text = "Grüße, 世界"
        expect(await self.call("echo", {"text": text}) == text, "another text came back")
        return text

    async def list_resources(self):
        self.uris = [str(resource.uri) for resource in (await self.session.list_resources()).resources]
        expect(self.uris, "no resource")
        return self.uris

    async def read_resources(self):
        for uri in self.uris:
            contents = (await self.session.read_resource(AnyUrl(uri))).contents
            expect(contents and str(contents[0].uri) == uri, f"no contents, or of another resource: {uri}")
        return f"{len(self.uris)} read"

    async def list_templates(self):
        templates = (await self.session.list_resource_templates()).resourceTemplates
        return [template.uriTemplate for template in templates]

    async def list_prompts(self):
        self.prompts = (await self.session.list_prompts()).prompts
        expect(self.prompts, "no prompt")
        return [prompt.name for prompt in self.prompts]

    async def get_prompts(self):
        for prompt in self.prompts:
            arguments = {argument.name: "you" for argument in prompt.arguments or [] if argument.required}
            messages = (await self.session.get_prompt(prompt.name, arguments)).messages
            expect(messages, f"no message: {prompt.name}")
        return f"{len(self.prompts)} read"

    async def complete(self, prompt, name, value):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return (await self.session.complete(ref, {"name": name, "value": value})).completion.values

    async def note(self):
        """Sets the level, and waits for what the tool logs."""
        await self.session.set_logging_level("info")
        await self.call("note", {})
        await self.logged.wait()
        return "arrived"

    async def ping(self):
        await self.session.send_ping()
        return "answered"

    async def progress(self):
        values = []

        async def listener(value):
            values.append(value)

        result = await self.slow(listener)
        expect(not result.isError, f"the tool failed: {result.content}")
        return increasing(values)

    async def cancel(self):
        """Cancels a slow call after its first progress; the session must go on. Says whether an answer came all the same."""
        answer, begun = [], anyio.Event()

        async def listener(_):
            begun.set()

        async def call():
            try:
                answer.append(f"a result: {(await self.slow(listener)).content[0].text}")
            except Exception as error:
                answer.append(f"an error: {error}")

        # The SDK has no cancel; the id is the one that the next request takes.
        request = self.session._request_id
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await begun.wait()
            parameters = types.CancelledNotificationParams(requestId=request, reason="enough")
            cancelled = types.CancelledNotification(method="notifications/cancelled", params=parameters)
            await self.session.send_notification(types.ClientNotification(cancelled))
            await self.session.send_ping()
            group.cancel_scope.cancel()
        return {"answered": bool(answer), "with": answer[0] if answer else None}


def transport(command):
    match command:
        case ["--http", url]:
            from mcp.client.streamable_http import streamablehttp_client

            return streamablehttp_client(url)
        case ["--sse", url]:
            from mcp.client.sse import sse_client

            return sse_client(url)
    return stdio_client(StdioServerParameters(command=command[0], args=command[1:]))


@asynccontextmanager
async def connect(command):
    async with transport(command) as streams, anyio.create_task_group() as group:
        # Over Streamable HTTP there is a third member beside the two streams.
        client = Client(streams[:2])
        async with client.session:
            if not CALLBACKS:
                group.start_soon(client.read)
            yield client
            group.cancel_scope.cancel()


async def use(steps, client):
    async def connected():
        result = await client.session.initialize()
        steps.revision = result.protocolVersion
        return result.serverInfo.name

    await steps.run("connect", connected)
    if steps.revision is None:
        return
    await steps.run("ping", client.ping)
    await steps.run("tools/list", client.list_tools)
    await steps.run("tools/call", client.echo)
    await steps.run("resources/list", client.list_resources)
    await steps.run("resources/read", client.read_resources)
    if hasattr(client.session, "list_resource_templates"):
        await steps.run("resources/templates/list", client.list_templates)
    await steps.run("prompts/list", client.list_prompts)
    await steps.run("prompts/get", client.get_prompts)
    await steps.run("progress", client.progress)
    # Up to 1.2 a client can neither cancel nor declare sampling.
    if CALLBACKS:
        await steps.run("cancel", client.cancel)
    await steps.asked(client.call, "ask", {})
    tools = client.tools if ELICITS else [tool for tool in client.tools if tool != "interview"]
    await steps.extras(tools, client.call, client.complete, client.note)


async def main(command):
    steps = Steps()
    try:
        async with connect(command) as client:
            await use(steps, client)
    except BaseException as error:
        steps.broken(error)
    else:
        steps.report("shutdown", True, "closed")
    steps.finish()


anyio.run(main, sys.argv[1:])
