import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open, post } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { openRecorded, type RecordedSession, withRecorder } from './recorder.ts';

const app = 'https://app.example.com';
const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

/** Every header that says something to a browser about another site. */
const permissions = (headers: Readonly<Record<string, unknown>>) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control-'));

describe('web pages', () => {
  let gateway: LocalGateway;
  let session: RecordedSession;
  beforeAll(async () => {
    gateway = await startLocalGateway(withRecorder('--allow-origin', app));
    session = await openRecorded(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  const preflight = async (headers: Record<string, string>, path = '/mcp') =>
    (
      await open(`${gateway.baseUrl}${path}`, {
        method: 'OPTIONS',
        headers: { Origin: app, 'Access-Control-Request-Method': 'POST', ...headers },
      })
    ).answer();

  const asked =
    'authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-param-region,mcp-protocol-version,mcp-session-id';

  it.each(['/mcp', '/sse', '/messages', '/.well-known/oauth-protected-resource'])(
    '[B18] [S05] of an allowed origin get their preflight answered: %s',
    async (path) => {
      const answer = await preflight({ 'Access-Control-Request-Headers': asked }, path);
      expect({ status: answer.status, text: answer.text }).toEqual({ status: 204, text: '' });
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': app,
        'access-control-allow-methods': 'GET, POST, DELETE',
        'access-control-allow-headers': asked,
        'access-control-max-age': '7200',
        vary: 'Origin, Access-Control-Request-Headers',
      });
      expect(await session.lines()).toEqual([]);
    },
  );

  it.each([
    ['another origin', { Origin: 'https://evil.example' }],
    ['null', { Origin: 'null' }],
    ['a sandwiched origin', { Origin: `${app}, https://evil.example` }],
    ['an allowed origin at a foreign host', { Host: 'evil.example' }],
  ])('[B18] [S05] get 403 and no permission by a preflight: %s', async (_, headers) => {
    const answer = await preflight(headers);
    expect(answer.status).toBe(403);
    expect(permissions(answer.headers)).toEqual([]);
  });

  it('[S05] get no header permitted that is none', async () => {
    const answer = await preflight({ 'Access-Control-Request-Headers': 'a;b="c"' });
    expect(answer.status).toBe(204);
    expect(answer.headers['access-control-allow-headers']).toBeUndefined();
  });

  it.each<[string, () => Promise<{ status: number; headers: Readonly<Record<string, unknown>> }>, number]>([
    ['an answer in JSON', () => session.request('ping', {}, { headers: { Origin: app } }), 200],
    ['an accepted notification', () => inSession('{"jsonrpc":"2.0","method":"notifications/x"}'), 202],
    ['a body that is no JSON', () => inSession('{'), 400],
    ['an unknown session', () => inSession(ping, { 'Mcp-Session-Id': 'unknown' }), 404],
    ['no endpoint', () => get('/nothing'), 404],
    ['a method that there is not', () => get('/mcp', 'PUT'), 405],
    ['the health check', () => get('/healthz'), 200],
    ['a POST in place of the old stream', () => get('/sse', 'POST'), 405],
  ])('[S05] of an allowed origin can read %s', async (_, send, status) => {
    const answer = await send();
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': app,
      'access-control-expose-headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After, DPoP-Nonce',
      vary: 'Origin',
    });
    // A browser sends nothing along by itself then: a page of an allowed origin has the token that it was given.
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
  });

  it.each(['/mcp', '/sse'])('[S05] of an allowed origin can read the stream of %s', async (path) => {
    const stream = await open(`${gateway.baseUrl}${path}`, {
      method: 'GET',
      headers: { Origin: app, Accept: 'text/event-stream', ...(path === '/mcp' && { 'Mcp-Session-Id': session.id }) },
    });
    expect({ status: stream.status, allowed: stream.headers['access-control-allow-origin'] }).toEqual({
      status: 200,
      allowed: app,
    });
    expect(stream.headers['content-type']).toBe('text/event-stream');
    stream.drop();
  });

  it('what is no web page is told nothing of this', async () => {
    const answer = await session.request('ping');
    expect(answer.status).toBe(200);
    expect(permissions(answer.headers)).toEqual([]);
    expect(answer.headers.vary).toBeUndefined();
  });

  it('an OPTIONS that is no preflight is a method that there is not', async () => {
    const answer = await get('/mcp', 'OPTIONS');
    expect(answer.status).toBe(405);
    expect(answer.headers['access-control-allow-methods']).toBeUndefined();
  });

  const inSession = (body: string, headers: Record<string, string> = {}) =>
    post(gateway.url, body, { Origin: app, 'Mcp-Session-Id': session.id, ...headers });
  const get = async (path: string, method = 'GET') =>
    (await open(`${gateway.baseUrl}${path}`, { method, headers: { Origin: app, Accept: '*/*' } })).answer();
});

it('[S05] with all origins allowed, no page gets the use of credentials that its browser adds', async () => {
  const gateway = await startLocalGateway(withRecorder('--allow-origin', '*'));
  const answer = await post(gateway.url, ping, { Origin: 'https://anywhere.example' });
  expect(answer.headers['access-control-allow-origin']).toBe('https://anywhere.example');
  expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
});
