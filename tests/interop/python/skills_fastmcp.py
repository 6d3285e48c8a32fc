"""Skills (SEP-2640) with fastmcp: `skills_fastmcp.py serve FOLDER` is a server of the skills in a folder, over Streamable HTTP on a free
port; `skills_fastmcp.py read URL` verifies each file of each skill of a server, and prints a line `{"file": URI, "sha256": DIGEST}` for it.
"""

import hashlib
import json
import sys

import anyio
from fastmcp import Client, FastMCP
from fastmcp.skills import SkillsClientExtension
from fastmcp.skills.provider import SkillsDirectoryProvider
from listen import listen


async def serve(folder):
    server = FastMCP("interop-peer")
    server.add_provider(SkillsDirectoryProvider(folder))
    await listen(server.http_app(path="/mcp"))


async def read(url):
    async with Client(url, extensions=[SkillsClientExtension()]) as client:
        for entry in await client.list_skills():
            skill = await client.read_skill(entry.uri)
            root = entry.uri.removesuffix("SKILL.md")
            for path, content in skill.files.items():
                print(json.dumps({"file": root + path, "sha256": hashlib.sha256(content).hexdigest()}))


match sys.argv[1:]:
    case ["serve", folder]:
        anyio.run(serve, folder)
    case ["read", url]:
        anyio.run(read, url)
    case other:
        raise ValueError(f"{other}: give `serve FOLDER` or `read URL`")
