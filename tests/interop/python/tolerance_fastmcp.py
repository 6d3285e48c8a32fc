"""A client with fastmcp in front of an untidy server: `tolerance_fastmcp.py METHOD COMMAND…` starts a stdio server,
`tolerance_fastmcp.py METHOD --http URL` connects to one.

Does what METHOD is about, and prints one line of JSON: what it delivers to its program, or the error.
"""

import sys

import anyio
from delivery import capabilities, deliver, texts
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


async def use(client, method):
    match method:
        case "tools/list":
            return ", ".join(tool.name for tool in await client.list_tools())
        case "prompts/list":
            return ", ".join(prompt.name for prompt in await client.list_prompts())
        case "resources/list":
            return ", ".join(resource.name for resource in await client.list_resources())
        case "resources/templates/list":
            return ", ".join(template.name for template in await client.list_resource_templates())
        case "tools/call":
            return texts((await client.call_tool("echo", {})).content)
        case "prompts/get":
            return texts(message.content for message in (await client.get_prompt("greet")).messages)
        case "resources/read":
            return texts(await client.read_resource("zoo://a"))
        case "initialize":
            return capabilities(client.server_capabilities)


async def main(method, command, *arguments):
    if command == "--http":
        transport = StreamableHttpTransport(arguments[0])
    else:
        transport = StdioTransport(command=command, args=list(arguments), keep_alive=False)
    async with Client(transport) as client:
        return await use(client, method)


deliver(lambda: anyio.run(main, *sys.argv[1:]))
