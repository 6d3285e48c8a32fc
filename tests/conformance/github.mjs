// Answers what `tier-check` asks GitHub about the repository from this checkout: files are looked up, and there are no issues, labels
// and releases. Only the conformance part of its score is used; the rest is about a published repository.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const real = globalThis.fetch;

function answer(status, body) {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json' }
  });
}

globalThis.fetch = async (request, options) => {
  const url = new URL(request instanceof Request ? request.url : request);
  if (url.hostname !== 'api.github.com') {
    return real(request, options);
  }
  // `/repos/OWNER/NAME/KIND/…`
  const [kind, ...rest] = url.pathname.split('/').slice(4);
  switch (kind) {
    case undefined:
      return answer(200, {});
    case 'contents':
      return existsSync(root + decodeURIComponent(rest.join('/')))
        ? answer(200, {})
        : answer(404, { message: 'Not Found' });
    default:
      return answer(200, []);
  }
};
