// A client with the TypeScript SDK 1.32: node typescript_client.mjs ENDPOINT [sse] signs in, calls `who` and prints its text.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MCP_EXACT_TYPESCRIPT}/package.json`);
const sdk = (path) => require(`@modelcontextprotocol/sdk/client/${path}.js`);
const { UnauthorizedError } = sdk('auth');
const { Client } = sdk('index');
const { SSEClientTransport } = sdk('sse');
const { StreamableHTTPClientTransport } = sdk('streamableHttp');

const REDIRECT = 'http://127.0.0.1:8765/callback';
const [endpoint, kind] = process.argv.slice(2);

// Follows redirects with cookies until the one to the client; returns the code.
async function browse(url) {
  const cookies = new Map();
  while (!url.href.startsWith(REDIRECT)) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const response = await fetch(url, { headers: { cookie }, redirect: 'manual' });
    for (const set of response.headers.getSetCookie()) {
      const [name, ...value] = set.split(';')[0].split('=');
      cookies.set(name, value.join('='));
    }
    url = new URL(response.headers.get('location'), url);
  }
  return url.searchParams.get('code');
}

const kept = {};
let code;
const authProvider = {
  redirectUrl: REDIRECT,
  clientMetadata: { client_name: 'test', redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: (url) => { code = browse(url); },
};
const Transport = kind === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
const transport = () => new Transport(new URL(endpoint), { authProvider });

let client = new Client({ name: 'test', version: '1.0.0' });
const first = transport();
try {
  await client.connect(first);
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
  await first.finishAuth(await code);
  client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport());
}
const result = await client.callTool({ name: 'who', arguments: {} });
console.log(result.content[0].text);
await client.close();
process.exit(0);
