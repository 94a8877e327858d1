import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import WebSocket from 'ws';
import { endAfterTest, hasProgram, waitUntilUp } from '../support/balancer.ts';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { findFreePort } from '../support/redis-process.ts';

const hasNginx = hasProgram('nginx');

/** nginx with deploy/nginx.conf, in front of one gateway. */
async function startNginx(gatewayPort: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-nginx-'));
  const port = await findFreePort();
  const shipped = readFileSync(`${root}deploy/nginx.conf`, 'utf8');
  const configuration = shipped
    .replaceAll('/tmp/', `${folder}/`)
    .replace('server gateway-1:8080', `server 127.0.0.1:${gatewayPort}`)
    .replace(/ *server gateway-2:8080.*\n/, '')
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
  const gateway = await startGateway({ command: everythingFixture });
  const port = await startNginx(gateway.port);
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
