"""A client with the Python SDK: `python_client.py ENDPOINT [sse]` signs in, calls `who` and prints its text."""

import asyncio
import sys
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

REDIRECT = "http://127.0.0.1:8765/callback"


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Follows redirects with cookies until the one to the client."""

    async def open(self, url):
        async with httpx2.AsyncClient() as http:
            while not url.startswith(REDIRECT):
                response = await http.get(url)
                url = str(response.url.join(response.headers["location"]))
        self.query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}

    async def callback(self):
        query = self.query
        return AuthorizationCodeResult(code=query["code"], state=query.get("state"), iss=query.get("iss"))


async def who(transport):
    async with Client(transport) as client:
        result = await client.call_tool("who", {})
        print(result.content[0].text)


async def main(endpoint, is_sse):
    browser = Browser()
    provider = OAuthClientProvider(
        endpoint,
        OAuthClientMetadata(client_name="test", redirect_uris=[REDIRECT]),
        Storage(),
        browser.open,
        browser.callback,
    )
    if is_sse:
        return await who(sse_client(endpoint, auth=provider))
    async with httpx2.AsyncClient(auth=provider, timeout=30) as http:
        await who(streamable_http_client(endpoint, http_client=http))


asyncio.run(main(sys.argv[1], sys.argv[2:] == ["sse"]))
