// An authorization server of oidc-provider that signs its one user in without asking.
// node provider.mjs JWK [OPTIONS]: prints its issuer; JWK is the public key of the clients `keyed` and `person`. OPTIONS is JSON:
// `ttl` of access tokens in seconds, `nonce` if proofs of possession need one, and `gateway`, the URL of a gateway that signs its users in
// here (the one user has another name in the cookie `user`) and exchanges their tokens (RFC 8693).
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { Provider } from 'oidc-provider';

const [jwk, options] = process.argv.slice(2);
const { ttl = 600, nonce = false, gateway } = JSON.parse(options ?? '{}');
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const DOCUMENT = 'https://app.example/client.json';
const free = await new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const issuer = `http://127.0.0.1:${free}`;
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const key = { ...privateKey.export({ format: 'jwk' }), kid: 'k', alg: 'ES256', use: 'sig' };
const resourceServer = (indicator) => ({
  scope: 'read use write',
  audience: indicator,
  accessTokenFormat: 'jwt',
  accessTokenTTL: ttl,
  jwt: { sign: { alg: 'ES256' } },
});
const machine = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [], scope: 'read write' };

const provider = new Provider(issuer, {
  clientDefaults: { id_token_signed_response_alg: 'ES256' },
  clients: [
    { ...machine, client_id: 'secret', client_secret: 'a secret of the client' },
    {
      ...machine,
      client_id: 'keyed',
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'ES256',
      jwks: { keys: [JSON.parse(jwk)] },
    },
    {
      client_id: 'person',
      redirect_uris: ['http://127.0.0.1:8765/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      application_type: 'native',
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'ES256',
      jwks: { keys: [JSON.parse(jwk)] },
    },
    ...(gateway ? [{
      client_id: 'gateway',
      client_secret: 's3cret',
      redirect_uris: [`${gateway}/consent/signed-in`],
      grant_types: ['authorization_code', EXCHANGE],
      application_type: 'native',
    }] : []),
  ],
  cookies: { keys: ['of a test'] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => nonce },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, indicator) => resourceServer(indicator),
      useGrantedResource: () => true,
    },
  },
  // The document of a client on the web; nothing else is fetched.
  fetch: async (url) => (String(url) === DOCUMENT ? Response.json({
    client_id: DOCUMENT,
    client_name: 'App',
    redirect_uris: ['http://127.0.0.1:8765/callback'],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }) : new Response(null, { status: 404 })),
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  jwks: { keys: [key] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ['openid', 'offline_access', 'read', 'use', 'write'],
});

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next();
  const { params, prompt, session } = await provider.interactionDetails(ctx.req, ctx.res);
  let result = { login: { accountId: ctx.cookies.get('user', { signed: false }) ?? 'user' } };
  if (prompt.name === 'consent') {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope ?? '');
    for (const resource of [params.resource ?? []].flat()) {
      grant.addResourceScope(resource, params.scope ?? '');
    }
    result = { consent: { grantId: await grant.save() } };
  }
  ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission: true }));
});
if (gateway) {
  const { d, ...publicKey } = key;
  const keys = createLocalJWKSet({ keys: [publicKey] });
  provider.registerGrantType(EXCHANGE, async (ctx) => {
    const { client, params } = ctx.oidc;
    const { payload } = await jwtVerify(params.subject_token, keys, { issuer, audience: gateway });
    const token = new provider.AccessToken({ accountId: payload.sub, client, gty: 'token_exchange', scope: params.scope ?? '' });
    token.resourceServer = new provider.ResourceServer(params.resource, resourceServer(params.resource));
    ctx.body = {
      access_token: await token.save(),
      expires_in: token.expiration,
      issued_token_type: ACCESS_TOKEN,
      token_type: 'Bearer',
    };
  }, ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'scope']);
}
provider.on('server_error', (ctx, error) => console.error(error));
provider.listen(free, '127.0.0.1', () => console.log(issuer));
