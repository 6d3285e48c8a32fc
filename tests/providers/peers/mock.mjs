// An authorization server of oauth2-mock-server. node mock.mjs RESOURCE: prints its issuer.
import { OAuth2Server } from 'oauth2-mock-server';

const [resource] = process.argv.slice(2);
const server = new OAuth2Server();
await server.issuer.keys.generate('ES256');
server.service.on('beforeTokenSigning', (token, request) => {
  token.payload.aud = request.body?.resource ?? resource;
  token.payload.scope = request.body?.scope ?? 'read';
  token.payload.client_id ??= request.body?.client_id ?? 'unknown';
});
await server.start(0, '127.0.0.1');
server.issuer.url = `http://127.0.0.1:${server.address().port}`;
console.log(server.issuer.url);
