import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import WebSocket from 'ws';
import { everythingFixture, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';

const hasNginx = (() => {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** nginx with deploy/nginx.conf, in front of one gateway. */
async function startNginx(gatewayPort: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-nginx-'));
  const port = await freePort();
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
  const exited = once(nginx, 'exit');
  onTestFinished(async () => {
    nginx.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  });
  const isUp = () =>
    fetch(`http://127.0.0.1:${port}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await waitFor(isUp, { what: 'nginx' });
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
