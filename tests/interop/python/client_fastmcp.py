"""A client with fastmcp: `client_fastmcp.py MODE COMMAND…` starts a stdio server and uses it; `client_fastmcp.py MODE --http URL` and
`client_fastmcp.py MODE --sse URL` connect to one.

MODE is `auto` (probe, else handshake), `legacy` (handshake only) or a revision without handshake.
Prints the steps that README.md describes; never looks at what the server is written with.
"""

import sys

import anyio
import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from steps import ROOT, SAMPLED, Steps, expect, increasing


async def sample(messages, params, context):
    return SAMPLED


async def elicit(message, response_type, params, context):
    return ElicitResult(action="accept", content={"word": message})


class Uses:
    """What is done with a connected client, one method a step."""

    def __init__(self, client, logged):
        self.client = client
        self.logged = logged
        self.tools = []

    async def list_tools(self):
        names = [tool.name for tool in await self.client.list_tools()]
        expect({"echo", "slow", "ask"} <= set(names), f"a tool is missing: {names}")
        self.tools = names
        return names

    async def call(self, name, arguments):
        return (await self.client.call_tool(name, arguments)).content[0].text

    async def echo(self):
        text = "Grüße, 世界"
        expect(await self.call("echo", {"text": text}) == text, "another text came back")
        return text

    async def list_resources(self):
        self.uris = [str(resource.uri) for resource in await self.client.list_resources()]
        expect(self.uris, "no resource")
        return self.uris

    async def read_resources(self):
        for uri in self.uris:
            contents = await self.client.read_resource(uri)
            expect(contents and str(contents[0].uri) == uri, f"no contents, or of another resource: {uri}")
        return f"{len(self.uris)} read"

    async def list_templates(self):
        return [template.uri_template for template in await self.client.list_resource_templates()]

    async def list_prompts(self):
        self.prompts = await self.client.list_prompts()
        expect(self.prompts, "no prompt")
        return [prompt.name for prompt in self.prompts]

    async def get_prompts(self):
        for prompt in self.prompts:
            arguments = {argument.name: "you" for argument in prompt.arguments or [] if argument.required}
            messages = (await self.client.get_prompt(prompt.name, arguments)).messages
            expect(messages, f"no message: {prompt.name}")
        return f"{len(self.prompts)} read"

    async def complete(self, prompt, name, value):
        ref = types.PromptReference(name=prompt)
        return (await self.client.complete(ref, {"name": name, "value": value})).values

    async def note(self):
        """Sets the level and waits for what the tool logs."""
        await self.client.set_logging_level("info")
        await self.call("note", {})
        await self.logged.wait()
        return "arrived"

    async def ping(self):
        expect(await self.client.ping(), "no answer")
        return "answered"

    async def progress(self):
        values = []

        async def listener(value, total, message):
            values.append(value)

        await self.client.call_tool("slow", {}, progress_handler=listener)
        return increasing(values)

    async def cancel(self):
        """Gives a slow call up after its first progress; the session must go on."""
        ended = []
        with anyio.CancelScope() as scope:

            async def listener(value, total, message):
                scope.cancel()

            ended.append(await self.client.call_tool("slow", {}, progress_handler=listener))
        expect(not ended, "the call ended before it could be cancelled")
        await self.call("echo", {"text": "still here"})
        # An answer that comes all the same is dropped, and nobody is told.
        return {"answered": None}


async def use(steps, client, logged):
    uses = Uses(client, logged)
    if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await steps.run("ping", uses.ping)
    await steps.run("tools/list", uses.list_tools)
    await steps.run("tools/call", uses.echo)
    await steps.run("resources/list", uses.list_resources)
    await steps.run("resources/read", uses.read_resources)
    await steps.run("resources/templates/list", uses.list_templates)
    await steps.run("prompts/list", uses.list_prompts)
    await steps.run("prompts/get", uses.get_prompts)
    await steps.run("progress", uses.progress)
    await steps.run("cancel", uses.cancel)
    await steps.asked(uses.call, "ask", {})
    await steps.extras(uses.tools, uses.call, uses.complete, uses.note)


def transport(command, *arguments):
    match command:
        case "--http":
            return StreamableHttpTransport(arguments[0])
        case "--sse":
            return SSETransport(arguments[0])
    return StdioTransport(command=command, args=list(arguments), keep_alive=False)


async def main(mode, *command):
    steps = Steps()
    logged = anyio.Event()

    async def log(message):
        if message.data == "noted":
            logged.set()

    client = Client(
        transport(*command),
        mode=mode,
        roots=[ROOT],
        sampling_handler=sample,
        elicitation_handler=elicit,
        log_handler=log,
    )
    try:
        async with client:
            steps.revision = client.protocol_version
            steps.report("connect", True, client.server_info.name if client.server_info else None)
            await use(steps, client, logged)
    except BaseException as error:
        steps.broken(error)
    else:
        steps.report("shutdown", True, "closed")
    steps.finish()


anyio.run(main, *sys.argv[1:])
