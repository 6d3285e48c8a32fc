"""An authorization server of oidc-provider-mock: prints its issuer. Its tokens are opaque, and its metadata lists no PKCE method."""

from oidc_provider_mock import app
from werkzeug.serving import make_server

server = make_server("127.0.0.1", 0, app(), threaded=True)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
