"""A client with a Python SDK of generation 1: `client.py URL [sse]`. Uses a server, and prints the processes that have answered and the
revision."""

import sys

import anyio
import mcp.types as types
from mcp import ClientSession


async def roots(_):
    return types.ListRootsResult(roots=[types.Root(uri="file:///peer")])


def connect(url, transport=None):
    """Connects by Streamable HTTP, or by HTTP+SSE, which has no progress in the oldest SDKs."""
    if transport == "sse":
        from mcp.client.sse import sse_client

        return sse_client(url)
    from mcp.client.streamable_http import streamablehttp_client

    return streamablehttp_client(url)


async def main(url, transport=None):
    async with connect(url, transport) as (reader, writer, *_):
        async with ClientSession(reader, writer, list_roots_callback=roots) as session:
            revision = (await session.initialize()).protocolVersion

            async def call(name, text, **options):
                result = await session.call_tool(name, {"text": text}, **options)
                return result.content[0].text

            processes = set()
            for number in range(12):
                processes.add(await call("pid", ""))
                steps = []

                async def progressed(progress, total, message):
                    steps.append(progress)

                token = f"work-{number}"
                options = {} if transport == "sse" else {"progress_callback": progressed}
                done = await call("work", token, **options)
                assert done == token, f"{token}: {done}"
                assert not options or steps == [1, 2, 3, 4, 5, 6], f"{token}: {done} after {steps}"
                answer = await call("ask", "")
                assert "file:///peer" in answer, f"no answer in {answer}"
            print(len(processes), revision)


anyio.run(main, *sys.argv[1:])
