"""A client with a Python SDK of generation 2 in front of an untidy server: `tolerance_v2.py METHOD COMMAND…` starts a stdio server,
`tolerance_v2.py METHOD --http URL` connects to one.

Does what METHOD is about, and prints one line of JSON: what it delivers to its program, or the error.
"""

import sys

import anyio
from delivery import capabilities, deliver, pages, texts
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters


async def use(client, method):
    match method:
        case "tools/list":
            return await pages(client.list_tools, lambda page: [tool.name for tool in page.tools])
        case "prompts/list":
            return await pages(client.list_prompts, lambda page: [prompt.name for prompt in page.prompts])
        case "resources/list":
            return await pages(client.list_resources, lambda page: [resource.name for resource in page.resources])
        case "resources/templates/list":
            return await pages(
                client.list_resource_templates, lambda page: [template.name for template in page.resource_templates]
            )
        case "tools/call":
            return texts((await client.call_tool("echo", {})).content)
        case "prompts/get":
            return texts(message.content for message in (await client.get_prompt("greet")).messages)
        case "resources/read":
            return texts((await client.read_resource("zoo://a")).contents)
        case "initialize":
            return capabilities(client.server_capabilities)


async def main(method, command, *arguments):
    server = arguments[0] if command == "--http" else StdioServerParameters(command=command, args=list(arguments))
    async with Client(server, mode="auto") as client:
        return await use(client, method)


deliver(lambda: anyio.run(main, *sys.argv[1:]))
