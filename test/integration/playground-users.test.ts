import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { everythingFixture } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';

const keyOf = { ada: 'a'.repeat(40), bob: 'b'.repeat(40) };

/** The keys of Ada, and of Bob, who may look at the status page. */
function keysFile(): string {
  const keys = [
    { name: 'ada', sha256: createHash('sha256').update(keyOf.ada).digest('hex') },
    { name: 'bob', sha256: createHash('sha256').update(keyOf.bob).digest('hex'), scopes: ['gangway:status'] },
  ];
  const folder = mkdtempSync(join(tmpdir(), 'gangway-playground-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'keys.json');
  writeFileSync(path, JSON.stringify(keys), { mode: 0o600 });
  return path;
}

test('[P11] a page ends no session of another user, by whatever name it asks', async () => {
  const redis = await startRedis({});
  const adminPort = await findFreePort();
  const args = ['--redis', redis.url, '--api-keys-file', keysFile(), '--sse.reconnectDelay', '100ms'];
  const gateway = await startLocalGateway({ adminPort, command: everythingFixture, args });
  const session = await initialize(gateway.url, { headers: { Authorization: `Bearer ${keyOf.ada}` } });
  const stop = new AbortController();
  redis.pause(); // nobody can look up whose session it is
  const playing = await fetch(`http://127.0.0.1:${adminPort}/status/play/everything-server`, {
    headers: {
      Accept: 'text/event-stream',
      Authorization: `Bearer ${keyOf.bob}`,
      'MCP-Protocol-Version': '2025-11-25',
      'Mcp-Session-Id': session.id,
      'X-Gangway-Authorization': `Bearer ${keyOf.bob}`,
      'X-Gangway-Page': '1',
    },
    signal: stop.signal,
  });
  expect(playing.status).toBe(200);
  await delay(500);
  stop.abort();
  redis.resume();
  await delay(11_500); // the page could come back for 10 s
  expect((await session.request('tools/list')).status).toBe(200);
}, 40_000);
