import { describe, expect, it } from 'vitest';
import { createCors } from '../../../src/core/http/cors.ts';
import { originRules } from './admission-fixture.ts';

const app = 'https://app.example';
const cors = createCors(originRules({ allowOrigin: [app] }));
const host = 'localhost:8080';

describe('[S05] a request with an Origin', () => {
  it('of an allowed origin may be read by its page', () => {
    expect(cors('POST', { host, origin: app })).toEqual({
      isPreflight: false,
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
    ['no origin', { host }],
  ])('gets no permission: %s', (_, headers) => {
    const preflight = { ...headers, 'access-control-request-method': 'POST' };
    for (const answer of [cors('POST', headers), cors('OPTIONS', preflight)])
      expect(answer).toEqual({ isPreflight: false, headers: { vary: 'Origin' } });
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
    const { isPreflight, headers } = cors('OPTIONS', {
      host,
      origin: app,
      'access-control-request-method': 'POST',
      ...(requested !== undefined && { 'access-control-request-headers': requested }),
    });
    expect(isPreflight).toBe(true);
    expect(headers['access-control-allow-headers']).toBe(allowed);
    expect(headers).toMatchObject({
      vary: 'Origin, Access-Control-Request-Headers',
      'access-control-allow-origin': app,
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-max-age': '7200',
    });
    expect(headers).not.toHaveProperty('access-control-expose-headers');
  });
});
