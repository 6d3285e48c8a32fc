"""A server with a Python SDK of generation 2: serves 2026-07-28 and the handshake revisions, as the client opens.

`server_v2.py [--http | --sse]` offers what README.md describes. Over stdio it ends at the end of its input.
"""

import base64
import sys

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from listen import event_store, listen, sse_application

STEPS = 20
STEP_SECONDS = 0.05


def schema(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


async def list_tools(context, params):
    return types.ListToolsResult(
        tools=[
            types.Tool(name="echo", description="Answers with the text", input_schema=schema(text={"type": "string"})),
            types.Tool(name="slow", description="Reports progress", input_schema=schema()),
            types.Tool(name="ask", description="Asks the client", input_schema=schema()),
        ]
    )


async def call_tool(context, params):
    match params.name:
        case "echo":
            return text(params.arguments["text"])
        case "slow":
            return await slow(context)
        case "ask" if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return ask_within_the_result(context, params)
        case "ask":
            return await ask_by_request(context)
    raise ValueError(f"unknown tool: {params.name}")


def text(value):
    return types.CallToolResult(content=[types.TextContent(text=value)])


async def slow(context):
    for step in range(1, STEPS + 1):
        await anyio.sleep(STEP_SECONDS)
        await context.session.report_progress(step, STEPS)
    return text("done")


QUESTION = types.CreateMessageRequestParams(
    messages=[types.SamplingMessage(role="user", content=types.TextContent(text="Say something"))],
    max_tokens=16,
)

STATE = "asked, and waiting"


def questions(context):
    """What the client declared that it can be asked, under the name of the capability."""
    able = context.session.client_capabilities
    asked = {}
    if able and able.roots:
        asked["roots"] = types.ListRootsRequest()
    if able and able.sampling:
        asked["sampling"] = types.CreateMessageRequest(params=QUESTION)
    return asked


def ask_within_the_result(context, params):
    """2026-07-28: the first round asks, the second one has the answers and must bring the state back."""
    asked = questions(context)
    if asked and params.input_responses is None:
        return types.InputRequiredResult(input_requests=asked, request_state=STATE)
    if asked and params.request_state != STATE:
        raise ValueError(f"another state came back: {params.request_state}")
    return text("\n".join(answer(params.input_responses[name]) for name in asked))


async def ask_by_request(context):
    kinds = {"roots": types.ListRootsResult, "sampling": types.CreateMessageResult}
    asked = questions(context).items()
    answers = [answer(await context.session.send_request(request, kinds[name])) for name, request in asked]
    return text("\n".join(answers))


def answer(result):
    return str(result.roots[0].uri) if isinstance(result, types.ListRootsResult) else result.content.text


async def list_resources(context, params):
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="interop://greeting", name="greeting", mime_type="text/plain"),
            types.Resource(uri="interop://bytes", name="bytes", mime_type="application/octet-stream"),
        ]
    )


async def read_resource(context, params):
    path = params.uri.removeprefix("interop://")
    if path == "bytes":
        # In base64 these need both letters in which its two alphabets differ.
        blob = base64.b64encode(b"\xfb\xef\xff").decode()
        contents = types.BlobResourceContents(uri=params.uri, mime_type="application/octet-stream", blob=blob)
    elif path == "greeting" or path.startswith("item/"):
        value = "Hello" if path == "greeting" else "item " + path.removeprefix("item/")
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=value)
    else:
        raise ValueError(f"unknown resource: {params.uri}")
    return types.ReadResourceResult(contents=[contents])


async def list_resource_templates(context, params):
    template = types.ResourceTemplate(uri_template="interop://item/{id}", name="item")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def list_prompts(context, params):
    argument = types.PromptArgument(name="name", description="Who is greeted", required=True)
    return types.ListPromptsResult(prompts=[types.Prompt(name="greet", description="A greeting", arguments=[argument])])


async def get_prompt(context, params):
    if params.name != "greet":
        raise ValueError(f"unknown prompt: {params.name}")
    content = types.TextContent(text=f"Hello, {params.arguments['name']}")
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])


async def main(transport=None):
    server = Server(
        "interop-peer",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_resource_templates=list_resource_templates,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )

    async def run(read, write):
        await server.run(read, write, server.create_initialization_options())

    match transport:
        case None:
            async with stdio_server() as (read, write):
                await run(read, write)
        case "--http":
            await listen(server.streamable_http_app(event_store=event_store()))
        case "--sse":
            await listen(sse_application(run))
        case other:
            raise ValueError(f"{other} is not a transport; use --http, --sse or nothing")


anyio.run(main, *sys.argv[1:])
