import { expect, it } from 'vitest';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { hasNginx, nginxService } from './nginx.ts';
import { walk, withOptions } from './walk.ts';

it.skipIf(!hasNginx)(
  'docs/recipes/several-hosts.md leads to two gateways that share a Redis, behind nginx',
  async () => {
    const [first, second] = [await findFreePort(), await findFreePort()];
    const nginx = nginxService();
    const recipe = await walk({
      page: 'docs/recipes/several-hosts.md',
      folder: '.',
      ports: [8080, 6379],
      replace: { 'gateway-1.internal:8080': `127.0.0.1:${first}`, 'gateway-2.internal:8080': `127.0.0.1:${second}` },
      instead: {
        'redis.internal': '127.0.0.1',
        '0.0.0.0': '127.0.0.1',
        "alice.txt}' http://mcp.example.com": "alice.txt}' http://127.0.0.1",
        'listen ': 'listen 127.0.0.1:',
        ...nginx.instead,
      },
      shown: {
        'OK    127.0.0.1': 'OK    mcp.example.com',
        // Here the gateways listen on a loopback address, which the ready lines name.
        'http://gateway-1.internal': 'http://mcp.example.com',
        'http://gateway-2.internal': 'http://mcp.example.com',
      },
      // Both run on this machine, where only one could listen for other instances on the usual port.
      terminalEnv: {
        3: { GANGWAY_PORT: `${first}`, GANGWAY_CLUSTER_LINK_PORT: '0' },
        4: { GANGWAY_PORT: `${second}`, GANGWAY_CLUSTER_LINK_PORT: '0' },
      },
      programs: {
        ...nginx.programs,
        curl: withOptions('curl', '--no-progress-meter', '--connect-to', 'mcp.example.com::127.0.0.1:'),
      },
    });
    const check = recipe.outputs.at(-1) ?? '';
    expect(check).toContain('OK ');
    await recipe.end('3', 'SIGKILL');
    // With one gateway less every request still has an answer.
    const status = async () => {
      const answer = await fetch(`http://127.0.0.1:${recipe.port(8080)}/readyz`, {
        headers: { host: 'mcp.example.com' },
      });
      return answer.status;
    };
    for (let count = 0; count < 6; count++) expect(await status()).toBe(200);
    await recipe.end('4', 'SIGKILL');
    await waitFor(async () => (await status()) === 502, { what: 'nginx to have nobody left' });
  },
);
