import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it, onTestFinished } from 'vitest';
import { everythingFixture, root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { certificateFolder } from '../support/server-certificate.ts';
import { waitFor } from '../support/wait-for.ts';
import { has, hasNginx, nginxService } from './nginx.ts';
import { walk, withOptions } from './walk.ts';

const page = 'docs/recipes/reverse-proxy.md';

/** curl that finds mcp.example.com on this machine. */
const curlTo = (port: number, ...options: string[]): string =>
  withOptions('curl', '--no-progress-meter', '--connect-to', `mcp.example.com:443:127.0.0.1:${port}`, ...options);

it.skipIf(!hasNginx)(`${page} leads to a gateway behind nginx with TLS`, async () => {
  const folder = certificateFolder();
  onTestFinished(() => folder.remove());
  const { cert, key } = await folder.make('mcp', 'DNS:mcp.example.com');
  const [port, nginx] = [await findFreePort(), nginxService()];
  const recipe = await walk({
    page,
    headings: ['The gateway', 'nginx', 'Try it'],
    ports: [8080],
    instead: {
      'listen 443': `listen 127.0.0.1:${port}`,
      '/etc/ssl/mcp.pem': cert,
      '/etc/ssl/mcp.key': key,
      ...nginx.instead,
    },
    programs: { ...nginx.programs, curl: curlTo(port, '--cacert', cert) },
  });
  expect(await recipe.run('curl --include https://mcp.example.com/mcp')).toContain('HTTP/2 401');
});

// Debian's package starts a service, so CI does not install it.
it.skipIf(!has('caddy', 'version'))(`${page} leads to a gateway behind Caddy`, async () => {
  const port = await findFreePort();
  const options = 'admin off\n  skip_install_trust\n  auto_https disable_redirects';
  const site = `https://mcp.example.com:${port} {\n  bind 127.0.0.1\n  tls internal`;
  const folder = certificateFolder();
  onTestFinished(() => folder.remove());
  const recipe = await walk({
    page,
    headings: ['The gateway', 'Caddy', 'Try it'],
    ports: [8080],
    // A certificate of Caddy's own authority, and nothing for the rest of this machine.
    instead: { 'mcp.example.com {': `{\n  ${options}\n}\n${site}` },
    programs: { curl: curlTo(port, '--insecure') },
    env: { XDG_DATA_HOME: folder.path('data'), XDG_CONFIG_HOME: folder.path('config') },
  });
  expect(await recipe.run('curl --include https://mcp.example.com/mcp')).toContain('HTTP/2 401');
});

// CI has no HAProxy.
it.skipIf(!has('haproxy', '-v'))(
  'deploy/haproxy.cfg passes sessions on, and leaves out a gateway that is gone',
  async () => {
    const [here, gone] = [await startLocalGateway({ command: everythingFixture }), await findFreePort()];
    const folder = certificateFolder();
    onTestFinished(() => folder.remove());
    const port = await findFreePort();
    const shipped = readFileSync(`${root}deploy/haproxy.cfg`, 'utf8');
    const configuration = shipped
      .replace('bind :8080', `bind 127.0.0.1:${port}`)
      .replace('gateway-1 gateway-1:8080', `gateway-1 127.0.0.1:${here.port}`)
      .replace('gateway-2 gateway-2:8080', `gateway-2 127.0.0.1:${gone}`);
    writeFileSync(folder.path('haproxy.cfg'), configuration);
    const haproxy = spawn('haproxy', ['-db', '-f', folder.path('haproxy.cfg')], { stdio: 'ignore' });
    const exited = once(haproxy, 'exit');
    onTestFinished(async () => {
      haproxy.kill();
      await exited;
    });
    const isUp = () =>
      fetch(`http://127.0.0.1:${port}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await waitFor(isUp, { what: 'HAProxy' });
    const session = await initialize(`http://127.0.0.1:${port}/mcp`);
    for (let count = 0; count < 4; count++) {
      expect(await session.callTool('echo', { text: 'hi' })).toMatchObject({ content: [{ text: 'hi' }] });
    }
  },
);
