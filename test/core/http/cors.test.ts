import { describe, expect, it } from 'vitest';
import { withCors } from '../../../src/core/http/cors.ts';
import { createHttpContext } from '../../support/http-context.ts';
import { originRules } from './admission-fixture.ts';

const app = 'https://app.example';
const host = 'localhost:8080';

/** The headers of the response, and whether the request was answered as a preflight. */
function cors(method: string, headers: Readonly<Record<string, string | undefined>>) {
  const { context } = createHttpContext({ method });
  for (const [name, value] of Object.entries({ host: undefined, ...headers })) context.headers[name] = value;
  let isPreflight = true;
  withCors(originRules({ allowOrigin: [app] }), () => {
    isPreflight = false;
  })(context);
  const { outgoing } = context;
  return { isPreflight, status: outgoing.statusCode, headers: { ...outgoing.getHeaders() } };
}

describe('[S05] a request with an Origin', () => {
  it('of an allowed origin may be read by its page', () => {
    expect(cors('POST', { host, origin: app })).toEqual({
      isPreflight: false,
      status: 200,
      headers: {
        vary: 'Origin',
        'access-control-allow-origin': app,
        'access-control-expose-headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After, DPoP-Nonce',
      },
    });
  });

  it.each([
    ['a foreign origin', { host, origin: 'https://evil.example' }],
    ['null', { host, origin: 'null' }],
    ['a foreign host', { host: 'evil.example', origin: app }],
    ['no host', { origin: app }],
  ])('gets no permission: %s', (_, headers) => {
    const preflight = { ...headers, 'access-control-request-method': 'POST' };
    for (const answer of [cors('POST', headers), cors('OPTIONS', preflight)])
      expect(answer).toEqual({ isPreflight: false, status: 200, headers: { vary: 'Origin' } });
  });

  it('is not needed: without one, the response has no header of CORS', () => {
    expect(cors('POST', { host })).toEqual({ isPreflight: false, status: 200, headers: {} });
  });

  it.each([
    ['OPTIONS without a requested method', 'OPTIONS', {}],
    ['another method with one', 'POST', { 'access-control-request-method': 'POST' }],
  ])('is no preflight: %s', (_, method, headers) => {
    expect(cors(method, { host, origin: app, ...headers }).isPreflight).toBe(false);
  });

  it.each([
    ['content-type, mcp-param-region', 'content-type, mcp-param-region'],
    ['', undefined],
    ['x: y', undefined],
    ['x\r\ny', undefined],
    [undefined, undefined],
  ])('is a preflight that may ask for the headers %j', (requested, allowed) => {
    const { isPreflight, status, headers } = cors('OPTIONS', {
      host,
      origin: app,
      'access-control-request-method': 'POST',
      ...(requested !== undefined && { 'access-control-request-headers': requested }),
    });
    expect({ isPreflight, status }).toEqual({ isPreflight: true, status: 204 });
    expect(headers['access-control-allow-headers']).toBe(allowed);
    expect(headers).toMatchObject({
      vary: 'Origin, Access-Control-Request-Headers',
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-max-age': 7200,
    });
    expect(headers).not.toHaveProperty('access-control-expose-headers');
  });
});
