"""A protected server with the Python SDK: `python_server.py ISSUER [sse]` prints its endpoint.

Tokens are verified by the keys of the issuer, with the endpoint as audience.
"""

import asyncio
import socket
import sys

import jwt
import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer


class Verifier:
    def __init__(self, issuer, resource):
        self.issuer, self.resource = issuer, resource
        self.keys = jwt.PyJWKClient(f"{issuer}/jwks")

    def check(self, token):
        key = self.keys.get_signing_key_from_jwt(token)
        return jwt.decode(token, key, algorithms=["ES256"], audience=self.resource, issuer=self.issuer)

    async def verify_token(self, token):
        try:
            claims = await asyncio.to_thread(self.check, token)
        except jwt.PyJWTError:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims.get("scope", "").split(),
            expires_at=claims["exp"],
            resource=self.resource,
            subject=claims["sub"],
        )


issuer = sys.argv[1]
listener = socket.create_server(("127.0.0.1", 0))
is_sse = sys.argv[2:] == ["sse"]
resource = f"http://127.0.0.1:{listener.getsockname()[1]}/{'sse' if is_sse else 'mcp'}"
server = MCPServer(
    "protected",
    token_verifier=Verifier(issuer, resource),
    auth=AuthSettings(
        issuer_url=issuer,
        resource_server_url=resource,
        required_scopes=["read"],
        validate_token_resource=True,
    ),
)


@server.tool()
def who() -> str:
    return "allowed"


print(resource, flush=True)
app = server.sse_app() if is_sse else server.streamable_http_app()
config = uvicorn.Config(app, log_level="error")
asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))
