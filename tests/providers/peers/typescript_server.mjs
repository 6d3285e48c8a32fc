// A protected server with the TypeScript SDK 1.32: node typescript_server.mjs ISSUER prints its origin, which is the resource.
// The endpoint is /mcp, HTTP+SSE is at /sse. Tokens are verified by the keys of the issuer.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const require = createRequire(`${process.env.MCP_EXACT_TYPESCRIPT}/package.json`);
const sdk = (path) => require(`@modelcontextprotocol/sdk/server/${path}.js`);
const express = require('express');
const { McpServer } = sdk('mcp');
const { InvalidTokenError } = sdk('auth/errors');
const { requireBearerAuth } = sdk('auth/middleware/bearerAuth');
const { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } = sdk('auth/router');
const { SSEServerTransport } = sdk('sse');
const { StreamableHTTPServerTransport } = sdk('streamableHttp');

const [issuer] = process.argv.slice(2);
const app = express();
const http = app.listen(0, '127.0.0.1');
await new Promise((resolve) => http.once('listening', resolve));
const resource = new URL(`http://127.0.0.1:${http.address().port}`);
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

async function verifyAccessToken(token) {
  const options = { algorithms: ['ES256'], audience: resource.href, issuer };
  const { payload } = await jwtVerify(token, keys, options).catch((error) => {
    throw new InvalidTokenError(error.message);
  });
  const { aud, client_id: clientId, exp: expiresAt, scope, sub } = payload;
  return { token, clientId, expiresAt, scopes: scope.split(' '), resource: new URL(aud), extra: { sub } };
}

function build() {
  const server = new McpServer({ name: 'protected', version: '1.0.0' });
  server.registerTool('who', { description: 'Says who calls' }, async ({ authInfo }) => ({
    content: [{ type: 'text', text: `${authInfo.extra.sub} ${authInfo.scopes.join(' ')}` }],
  }));
  return server;
}

const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource, scopesSupported: ['read'] }));
app.use(requireBearerAuth({
  verifier: { verifyAccessToken },
  requiredScopes: ['read'],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  expectedResource: resource,
}));
app.use(express.json());

const sessions = new Map();
app.all('/mcp', async (request, response) => {
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await build().connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});
app.get('/sse', async (request, response) => {
  const transport = new SSEServerTransport('/messages', response);
  sessions.set(transport.sessionId, transport);
  await build().connect(transport);
});
app.post('/messages', async (request, response) => {
  await sessions.get(request.query.sessionId).handlePostMessage(request, response, request.body);
});
console.log(resource.origin);
