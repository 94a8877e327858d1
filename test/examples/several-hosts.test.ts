import { expect, it } from 'vitest';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { hasNginx, nginxService } from './nginx.ts';
import { walk, withOptions } from './walk.ts';

/** Each page starts two gateways, and several programs before them. */
const patient = 180_000;

it.skipIf(!hasNginx)(
  'docs/recipes/several-hosts.md leads to two gateways that share a Redis, behind nginx',
  async () => {
    const [first, second] = [await findFreePort(), await findFreePort()];
    const nginx = nginxService();
    const recipe = await walk({
      page: 'docs/recipes/several-hosts.md',
      folder: '.',
      headings: ['1. Redis', '2. The configuration', '3. The gateways', '4. The load balancer', '5. Try it'],
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
  patient,
);

it(
  'docs/recipes/several-hosts.md leads to two gateways on one machine, of which one resumes the stream of the other',
  async () => {
    const recipe = await walk({
      page: 'docs/recipes/several-hosts.md',
      folder: '.',
      headings: ['Try it on one machine'],
      ports: [8081, 8082, 6380],
      // On a busy machine, the call may begin late.
      instead: { '-m 2': '-m 4', '"duration":4': '"duration":8' },
      shown: { 'Duration: 8': 'Duration: 4' },
    });
    const [cut = '', rest = '', echo = ''] = recipe.outputs.slice(-3);
    const progressIn = (output: string) => [...output.matchAll(/"progress":(\d)/g)].map(([, step]) => Number(step));
    expect([...progressIn(cut), ...progressIn(rest)]).toEqual([1, 2, 3, 4]);
    expect(echo).toContain('Echo: hi');
    await recipe.end('3', 'SIGKILL');
    const headers = '-H "$json" -H "Mcp-Session-Id: $session"';
    // Until the first gateway counts as lost, the second one waits for it.
    const again = `curl -sN $two ${headers} -H 'Accept: text/event-stream' -H "Last-Event-ID: $last"`;
    expect(progressIn(await recipe.run(again))).toEqual(progressIn(rest));
    const list = `curl -s $two ${headers} -d '{"jsonrpc":"2.0","id":4,"method":"tools/list"}'`;
    expect(await recipe.run(list)).toContain('"name":"echo"');
  },
  patient,
);
