import { expect, it } from 'vitest';
import { startOldServer } from './old-server.ts';
import { walk, withOptions } from './walk.ts';

it('an old SSE server gets an endpoint with TLS and keys', async () => {
  const example = await walk({ page: 'examples/old-sse-with-tls-and-keys/README.md', ports: [8443, 9000] });
  // Another key than Alice's is refused.
  const other = await example.run('KEY=mcpgw_wrong node ../ask.mjs https://localhost:8443/mcp where || true');
  expect(other).toContain('Error');
  // The server really is the old one: without it there is no answer.
  await example.end('2');
  const alone = await example.run(
    'HEADER_FILE=alice.txt node ../ask.mjs https://localhost:8443/mcp where || echo "ended with $?"',
  );
  expect(alone).toContain('ended with 1');
});

it('docs/recipes/old-sse-server.md leads from an old server to a call with TLS and a key', async () => {
  const old = await startOldServer();
  const recipe = await walk({
    page: 'docs/recipes/old-sse-server.md',
    ports: [8443],
    replace: { 'old.internal:9000': old },
    // One machine stands in for both hosts. Only the loopback address is used.
    instead: { '0.0.0.0': '127.0.0.1' },
    shown: { [old.replace(':', '-')]: 'old.internal-9000', '127.0.0.1': 'old.internal' },
    programs: { curl: withOptions('curl', '--no-progress-meter', '--connect-to', 'mcp.example.com::127.0.0.1:') },
  });
  const refused = await recipe.run(
    "curl --silent --cacert server.pem https://mcp.example.com:8443/mcp -H 'Content-Type: application/json' -d '{}'",
  );
  expect(refused).toContain('credentials_required');
});
