import { expect, it } from 'vitest';
import { walk } from './walk.ts';

it('OAuth with a local issuer: a client logs in, and needs the scope of a tool', async () => {
  const example = await walk({
    page: 'examples/oauth-with-a-local-issuer/README.md',
    ports: [8080, 9400, 9401],
  });
  // A token whose signature was changed is refused.
  const other = await example.run(
    'KEY=$(node login.mjs http://127.0.0.1:8080/mcp demo:use)x node ../ask.mjs http://127.0.0.1:8080/mcp || true',
  );
  expect(other).toContain('credentials_invalid');
});
