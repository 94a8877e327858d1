import { describe, expect, it, onTestFinished } from 'vitest';
import { withCors } from '../../../src/core/http/cors.ts';
import type { Endpoint } from '../../../src/core/http/http-context.ts';
import { faultPage, jsonResponse, respondWithJson } from '../../../src/core/http/respond.ts';
import { asHandler, Routes } from '../../../src/core/http/router.ts';
import { reportFaultsTo, type Seam } from '../../../src/core/util/boundary.ts';
import { createHttpContext, type FakeRequest } from '../../support/http-context.ts';
import { originRules } from './admission-fixture.ts';

const found: Endpoint = ({ outgoing }) => respondWithJson(outgoing, 200, '{}');
const app = 'https://app.example';

function createRoutes(): Routes {
  const routes = new Routes('request', 'no_such_path');
  routes.app.all('/mcp', asHandler(found));
  return routes;
}
const router = withCors(originRules({ allowOrigin: [app] }), createRoutes().answer);

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
    const routes = createRoutes();
    routes.app.get('/readable', asHandler(found));
    expect(answer(routes.answer, { method, url: '/readable' })).toMatchObject({ status, fault });
  });

  it('are listed in a refusal', () => {
    const routes = createRoutes();
    routes.app.on(['GET', 'POST'], '/both', asHandler(found));
    expect(answer(routes.answer, { method: 'PUT', url: '/both' }).headers).toMatchObject({ allow: 'GET, HEAD, POST' });
  });

  it('reach an endpoint of all methods as they are', () => {
    const routes = createRoutes();
    const methods: string[] = [];
    routes.app.all(
      '/any',
      asHandler(({ method }) => void methods.push(method)),
    );
    for (const method of ['GET', 'HEAD', 'PURGE']) routes.answer(createHttpContext({ method, url: '/any' }).context);
    expect(methods).toEqual(['GET', 'HEAD', 'PURGE']);
  });
});

describe('a request', () => {
  it.each([
    ['1.1', 400, 'bad_host'],
    ['1.0', 200, undefined],
  ])('needs a Host in HTTP/%s', (httpVersion, status, fault) => {
    const { context, response } = createHttpContext();
    delete context.headers.host;
    context.incoming.httpVersion = httpVersion;
    router(context);
    expect([response()?.status, context.fault]).toEqual([status, fault]);
  });
});

describe('the routes', () => {
  it('take no character of a path as a pattern', () => {
    const routes = createRoutes();
    for (const path of ['/:name/mcp', '/*/mcp', '/a{b}/mcp', '/x?/mcp']) routes.app.all(path, asHandler(found));
    expect(answer(routes.answer, { url: '/:name/mcp' }).status).toBe(200);
    expect(answer(routes.answer, { url: '/*/mcp' }).status).toBe(200);
    expect(answer(routes.answer, { url: '/some/mcp' }).status).toBe(404);
    expect(answer(routes.answer, { url: '/a/mcp' }).status).toBe(404);
    expect(answer(routes.answer, { url: '/x/mcp' }).status).toBe(404);
  });

  it('reach everything below a path that ends with an asterisk', () => {
    const routes = createRoutes();
    const paths: string[] = [];
    routes.app.get(
      '/page/*',
      asHandler((_, path) => void paths.push(path)),
    );
    for (const url of ['/page/a.js', '/page/a/b?c=d', '/page', '/pages/a']) answer(routes.answer, { url });
    expect(paths).toEqual(['/page/a.js', '/page/a/b']);
  });

  it('of which the first of a path and method answers', () => {
    const routes = createRoutes();
    routes.app.all(
      '/mcp',
      asHandler((context) => context.respondWithFault('bad_host')),
    );
    expect(answer(routes.answer, { url: '/mcp' }).status).toBe(200);
  });

  it('send a complete response of hono, without its body for HEAD', async () => {
    const routes = createRoutes();
    routes.app.get('/document', () => jsonResponse({ a: 1 }, 203, { 'x-other': '2' }));
    for (const [method, text] of [
      ['GET', '{"a":1}'],
      ['HEAD', ''],
    ] as const) {
      const { context, response } = createHttpContext({ method, url: '/document' });
      routes.answer(context);
      await expect.poll(response, { timeout: 30_000 }).toMatchObject({
        status: 203,
        headers: { 'content-length': '7', 'x-other': '2', 'x-content-type-options': 'nosniff' },
        text,
      });
    }
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('broken handler');
      },
    ],
    ['rejects', () => Promise.reject(new Error('broken handler'))],
    [
      'throws something else',
      () => {
        throw 'broken handler';
      },
    ],
  ])('answer internal for a handler that %s', async (_, handler) => {
    const faults: Seam[] = [];
    onTestFinished(reportFaultsTo((seam) => void faults.push(seam)));
    const routes = createRoutes();
    routes.app.get('/broken', handler);
    const { context, response } = createHttpContext({ url: '/broken' });
    context.contain(() => routes.answer(context));
    await expect.poll(() => response()?.status, { timeout: 30_000 }).toBe(500);
    expect(context.fault).toBe('internal');
    expect(faults).toEqual(['request']);
  });
});
