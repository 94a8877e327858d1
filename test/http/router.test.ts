import { describe, expect, it } from 'vitest';
import { createCors } from '../../src/http/cors.ts';
import type { Endpoint } from '../../src/http/http-context.ts';
import { faultPage, respondWithJson } from '../../src/http/respond.ts';
import { byMethod, createRouter, readable } from '../../src/http/router.ts';
import { createHttpContext, type FakeRequest } from '../support/http-context.ts';
import { originRules } from './admission-fixture.ts';

const found: Endpoint = ({ outgoing }) => respondWithJson(outgoing, 200, '{}');
const app = 'https://app.example';
const router = createRouter((path) => (path === '/mcp' ? found : undefined), {
  cors: createCors(originRules({ allowOrigin: [app] })),
  notFoundReason: 'no_such_path',
});

function answer(endpoint: Endpoint, request: FakeRequest) {
  const { context, response } = createHttpContext(request);
  endpoint(context);
  const { status, headers } = response() ?? {};
  return { status, headers, fault: context.fault };
}

describe('the router', () => {
  it.each([
    ['/mcp', 200, undefined],
    ['/mcp?x=/other', 200, undefined],
    ['/mcp/', 200, undefined],
    ['/mcp/?x=/other', 200, undefined],
    ['/mcp//', 404, 'no_such_path'],
    ['/MCP', 404, 'no_such_path'],
    ['//mcp', 404, 'no_such_path'],
    ['/%6dcp', 404, 'no_such_path'],
    ['/x/../mcp', 404, 'no_such_path'],
    ['http://localhost/mcp', 400, 'bad_target'],
    ['mcp', 400, 'bad_target'],
    ['*', 400, 'bad_target'],
    ['', 400, 'bad_target'],
  ])('finds an endpoint only by its exact path: %j', (url, status, fault) => {
    expect(answer(router, { url })).toMatchObject({ status, fault });
  });

  it('shows a browser a page with the reason, and nothing of the peer as HTML', () => {
    const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    const { status, headers } = answer(router, { url: '/', headers: html });
    expect([status, headers?.['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
    for (const accept of ['application/json', 'text/event-stream, text/html', '*/*'])
      expect(answer(router, { url: '/', headers: { accept } }).headers).toMatchObject({
        'content-type': 'application/json',
      });
    expect(faultPage('<script>"&')).toContain('<p>&lt;script&gt;&quot;&amp;</p>');
  });

  it('[S05] answers a preflight before any endpoint', () => {
    const headers = { origin: app, 'access-control-request-method': 'POST' };
    const preflight = answer(router, { method: 'OPTIONS', url: '/nowhere', headers });
    expect(preflight).toMatchObject({ status: 204, headers: { 'access-control-allow-origin': app } });
    expect(preflight.fault).toBeUndefined();
  });

  it('[S05] lets a page of an allowed origin read also a refusal', () => {
    expect(answer(router, { url: '/nowhere', headers: { origin: app } })).toMatchObject({
      status: 404,
      headers: { 'access-control-allow-origin': app, vary: 'Origin' },
    });
  });

  it('says nothing about origins to a request without one', () => {
    expect(answer(router, { url: '/mcp' }).headers).not.toHaveProperty('vary');
  });
});

describe('the methods of an endpoint', () => {
  it.each([
    ['GET', 200, undefined],
    ['HEAD', 200, undefined],
    ['POST', 405, 'wrong_method'],
    ['get', 405, 'wrong_method'],
  ])('are those that it has: %s', (method, status, fault) => {
    expect(answer(readable(found), { method })).toMatchObject({ status, fault });
  });

  it('are listed in a refusal', () => {
    const both = byMethod({ GET: found, POST: found });
    expect(answer(both, { method: 'PUT' }).headers).toMatchObject({ allow: 'GET, POST' });
  });

  it.each([
    ['1.1', 400, 'bad_host'],
    ['1.0', 200, undefined],
  ])('need a Host in HTTP/%s', (httpVersion, status, fault) => {
    const { context, response } = createHttpContext();
    delete context.headers.host;
    context.incoming.httpVersion = httpVersion;
    readable(found)(context);
    expect([response()?.status, context.fault]).toEqual([status, fault]);
  });
});
