import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { type RawAnswer, requestText, sendRaw } from './raw-http.ts';

let gateway: Gateway;
let adminPort: number;
beforeAll(async () => {
  adminPort = await findFreePort();
  gateway = await startGateway({ adminPort, command: everythingFixture, isStoppedWithTest: false });
});
afterAll(async () => void (await gateway?.stop()));

const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

const ask = (port: number, method: string, target: string, headers: readonly string[] = []): Promise<RawAnswer> => {
  const posted = ['Content-Type: application/json', `Content-Length: ${body.length}`];
  const sent = method === 'POST' ? posted : [];
  const all = [`Host: 127.0.0.1:${port}`, 'Connection: close', ...headers, ...sent];
  return sendRaw(port, requestText(`${method} ${target} HTTP/1.1`, all, method === 'POST' ? body : ''));
};

describe('only the exact path of an endpoint reaches it', () => {
  it.each([
    ['/x/../mcp', 404],
    ['/./mcp', 404],
    ['//mcp', 404],
    ['/mcp//', 404],
    ['/%6dcp', 404],
    ['/%6Dcp', 404],
    ['/x/%2e%2e/mcp', 404],
    ['/mcp#a', 404],
    ['/mcp%3Fa', 404],
    ['/MCP', 404],
    ['/x\\..\\mcp', 404],
    ['/x/../healthz', 404],
    ['/%68ealthz', 404],
    ['/healthz#a', 404],
    ['/mcp', 400], // the endpoint, which wants a session
    ['/mcp/', 400],
    ['/mcp?a=/x/../', 400],
    ['/healthz?a=b', 200],
  ])('[S-12] %s is answered with %i', async (target, status) => {
    const answer = await ask(gateway.port, target.includes('ealthz') ? 'GET' : 'POST', target);
    expect(answer.status).toBe(status);
    if (status === 404) expect(answer.json.error.data.reason).toBe('no_such_path');
  });

  it.each([
    '/x/../metrics',
    '/%6detrics',
    '/metrics#a',
    '/page/../metrics',
    '/page/%2e%2e/metrics',
    '/status/../metrics',
    '/x/../status/about',
    '/%73tatus/about',
    '//',
  ])('[S-12] the admin port has nothing at %s', async (target) => {
    const answer = await ask(adminPort, 'GET', target, ['X-Gangway-Page: 1']);
    expect(answer.status).toBe(404);
    expect(answer.json.error.data.reason).toBe('no_such_admin_path');
  });
});

describe('HEAD is answered as it should be, and nothing is written past the log', () => {
  const outside = (): string[] =>
    `${gateway.stderr()}${gateway.stdout()}`.split('\n').filter((line) => /^\s+at |Error|ERR_/.test(line));

  it.each(['/nope', '/x/../mcp', '/', '/%6dcp', '/healthz//'])('[S-10] HEAD %s: 404 without a body', async (target) => {
    const answer = await ask(gateway.port, 'HEAD', target);
    expect([answer.status, answer.text]).toEqual([404, '']);
    expect(outside()).toEqual([]);
  });

  it.each(['/mcp', '/sse', '/messages'])('[S-10] HEAD %s: 405, which names the methods', async (target) => {
    const answer = await ask(gateway.port, 'HEAD', target);
    expect([answer.status, answer.text]).toEqual([405, '']);
    expect(answer.headers.get('allow')).toMatch(/GET|POST/);
  });

  it.each(['/healthz', '/readyz'])(
    '[S-10] HEAD %s says at both ports what GET says, without the body',
    async (target) => {
      for (const port of [gateway.port, adminPort]) {
        const [got, head] = [await ask(port, 'GET', target), await ask(port, 'HEAD', target)];
        expect([head.status, head.text]).toEqual([200, '']);
        expect(head.headers.get('content-length')).toBe(got.headers.get('content-length'));
        const posted = await ask(port, 'POST', target);
        expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
        expect(posted.json.error.data.reason).toBe('wrong_method');
      }
    },
  );

  it.each([
    ['/status/events', 405],
    ['/status/about', 405],
    ['/status/nope', 404],
    ['/page/nope', 404],
    ['/nope', 404],
    ['/', 200],
    ['/metrics', 200],
  ])('[S-10] HEAD %s at the admin port: %i', async (target, status) => {
    const answer = await ask(adminPort, 'HEAD', target, ['X-Gangway-Page: 1']);
    expect([answer.status, answer.text]).toEqual([status, '']);
    expect(outside()).toEqual([]);
  });

  it('[S-10] HTTP/1.1 without Host is refused wherever it goes', async () => {
    for (const target of ['/healthz', '/mcp']) {
      const answer = await sendRaw(gateway.port, requestText(`GET ${target} HTTP/1.1`, ['Connection: close']));
      expect([target, answer.status, answer.json.error.data.reason]).toEqual([target, 400, 'bad_host']);
    }
    const older = await sendRaw(gateway.port, requestText('GET /healthz HTTP/1.0', []));
    expect(older.status).toBe(200);
  });
});
