import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import WebSocket from 'ws';
import { endAfterTest, expectAffinity, hasProgram, waitUntilUp } from '../support/balancer.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';

/** deploy/haproxy.cfg, in front of two gateways. */

const hasHaproxy = hasProgram('haproxy');

async function startHaproxy({ instances }: Cluster): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-haproxy-'));
  const port = await findFreePort();
  let configuration = readFileSync(`${root}deploy/haproxy.cfg`, 'utf8').replace('bind :8080', `bind 127.0.0.1:${port}`);
  for (const [index, gateway] of instances.entries())
    configuration = configuration.replace(` gateway-${index + 1}:8080`, ` 127.0.0.1:${gateway.port}`);
  expect(configuration).not.toMatch(/gateway-\d:8080/);
  // On a busy machine, a gateway may answer too late for a check. Its connections still say whether it is there.
  configuration = configuration.replace('fall 2', 'fall 1000');
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, configuration);
  const haproxy = spawn('haproxy', ['-db', '-q', '-f', file], { stdio: 'ignore' });
  endAfterTest(haproxy, 'SIGKILL', folder);
  await waitUntilUp(`http://127.0.0.1:${port}/readyz`, 'HAProxy', 20_000);
  return port;
}

describe.skipIf(!hasHaproxy)('HAProxy, as it is shipped', () => {
  it('[P-07] brings the requests of a session to its owner, and to another gateway when the owner is lost', async () => {
    const cluster = await startCluster({ instances: 2, link: 'local', command: everythingFixture });
    await expectAffinity(cluster, `http://127.0.0.1:${await startHaproxy(cluster)}/mcp`);
  }, 90_000);

  it('passes WebSocket', async () => {
    const cluster = await startCluster({ instances: 2, link: 'local', command: everythingFixture });
    const socket = new WebSocket(`ws://127.0.0.1:${await startHaproxy(cluster)}/ws`, 'mcp');
    await once(socket, 'open');
    const answer = once(socket, 'message');
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
    expect(JSON.parse(String((await answer)[0]))).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } });
    socket.terminate();
  }, 60_000);
});
