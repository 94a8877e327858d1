import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import WebSocket from 'ws';
import { endAfterTest, expectAffinity, hasProgram, waitUntilUp } from '../support/balancer.ts';
import { startCluster } from '../support/cluster.ts';
import { everythingFixture, root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { findFreePort } from '../support/redis-process.ts';

const hasNginx = hasProgram('nginx');

/** True if nginx can learn which gateway opened a session: 1.29.6 or newer. */
const learnsSessions = (() => {
  const version = /nginx\/(\d+)\.(\d+)\.(\d+)/.exec(spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr ?? '');
  const [major = 0, minor = 0, patch = 0] = version?.slice(1).map(Number) ?? [];
  return major * 1e6 + minor * 1e3 + patch >= 1_029_006;
})();

/** nginx with deploy/nginx.conf, in front of one gateway or two. `learns`: with its line on the owners of sessions. */
async function startNginx(gatewayPorts: readonly number[], { learns = false } = {}): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-nginx-'));
  const port = await findFreePort();
  const shipped = readFileSync(`${root}deploy/nginx.conf`, 'utf8');
  const configuration = shipped
    .replaceAll('/tmp/', `${folder}/`)
    .replace(/ *server gateway-(\d):8080(.*\n)/g, (_, number, rest) => {
      const port = gatewayPorts[number - 1];
      return port === undefined ? '' : `server 127.0.0.1:${port}${rest}`;
    })
    .replace(/# (?=sticky learn)/, learns ? '' : '# ')
    .replace('listen 8080', `listen 127.0.0.1:${port}`)
    .replace('/dev/stdout', `${folder}/access.log`)
    .replace('/dev/stderr', `${folder}/error.log`);
  writeFileSync(join(folder, 'nginx.conf'), configuration);
  const nginx = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder, '-g', 'daemon off;'], {
    stdio: 'ignore',
  });
  endAfterTest(nginx, 'SIGTERM', folder);
  await waitUntilUp(`http://127.0.0.1:${port}/healthz`, 'nginx');
  return port;
}

it.skipIf(!hasNginx)('[P-07] nginx, as it is shipped, passes sessions on HTTP and on WebSocket', async () => {
  const gateway = await startLocalGateway({ command: everythingFixture });
  const port = await startNginx([gateway.port]);
  const session = await initialize(`http://127.0.0.1:${port}/mcp`);
  expect(await session.callTool('echo', { text: 'by HTTP' })).toMatchObject({ content: [{ text: 'by HTTP' }] });
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, 'mcp');
  await once(socket, 'open');
  const answer = once(socket, 'message');
  const clientInfo = { name: 't', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
  expect(JSON.parse(String((await answer)[0]))).toMatchObject({ id: 1, result: { protocolVersion: '2025-11-25' } });
  socket.terminate();
});

it.skipIf(!learnsSessions)(
  '[P-07] nginx that learns sessions brings their requests to their owner',
  async () => {
    const cluster = await startCluster({ instances: 2, link: 'local', command: everythingFixture });
    const ports = cluster.instances.map(({ port }) => port);
    await expectAffinity(cluster, `http://127.0.0.1:${await startNginx(ports, { learns: true })}/mcp`);
  },
  90_000,
);
