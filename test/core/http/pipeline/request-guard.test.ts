import { describe, expect, it } from 'vitest';
import { createRequestGuard } from '../../../../src/core/http/pipeline/request-guard.ts';
import { noHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import { originRules } from '../admission-fixture.ts';

const server = { name: 'git', forwardHeaders: ['x-tenant'] } as unknown as Server;
const app = 'https://app.example';
const local = createRequestGuard({ server, originRules: originRules(), identityHeaders: ['x-user'] });
const open = createRequestGuard({
  server,
  originRules: originRules({ host: '0.0.0.0', allowOrigin: [app], allowHost: ['mcp.example'] }),
});

/** A head as Node.js gives it: the first of two Host headers counts. */
function head(...rawHeaders: string[]) {
  const headers: Record<string, string> = {};
  for (let i = 0; i < rawHeaders.length; i += 2)
    headers[rawHeaders[i]?.toLowerCase() as string] ??= rawHeaders[i + 1] as string;
  return { headers, rawHeaders };
}

describe('[B18] the guard of a gateway on a loopback address', () => {
  it.each([
    ['localhost', []],
    ['localhost:8080', []],
    ['127.0.0.1:1', ['Origin', 'http://127.0.0.1:5173']],
    ['[::1]:8080', ['Origin', 'http://localhost']],
    ['LOCALHOST', ['Origin', 'HTTP://LOCALHOST']],
  ])('lets requests to %s pass, with %j', (host, headers) => {
    expect(local(head('Host', host, ...headers))).toBe(noHeaders);
  });

  it.each([
    ['no Host', [], 'bad_host'],
    ['an empty Host', ['Host', ''], 'bad_host'],
    ['a Host with a path', ['Host', 'localhost/x'], 'bad_host'],
    ['a Host with a user', ['Host', 'me@localhost'], 'bad_host'],
    ['two names', ['Host', 'localhost, evil.example'], 'bad_host'],
    ['a foreign Host', ['Host', 'evil.example'], 'host_not_allowed'],
    ['a name that begins like a local one', ['Host', 'localhost.evil.example'], 'host_not_allowed'],
    ['a foreign Origin', ['Host', 'localhost', 'Origin', 'https://evil.example'], 'origin_not_allowed'],
    ['the Origin null', ['Host', 'localhost', 'Origin', 'null'], 'origin_not_allowed'],
    ['an empty Origin', ['Host', 'localhost', 'Origin', ''], 'origin_not_allowed'],
    ['two Hosts', ['Host', 'localhost', 'host', 'localhost'], 'duplicate_header'],
    [
      'two Origins',
      ['Host', 'localhost', 'Origin', 'http://localhost', 'Origin', 'http://localhost'],
      'duplicate_header',
    ],
    ['two tokens', ['Host', 'localhost', 'Authorization', 'a', 'AUTHORIZATION', 'a'], 'duplicate_header'],
    ['two headers of the protocol', ['Host', 'localhost', 'Mcp-Param-A', '1', 'mcp-param-a', '1'], 'duplicate_header'],
    ['two forwarded headers', ['Host', 'localhost', 'X-Tenant', 'a', 'x-tenant', 'b'], 'duplicate_header'],
    ['two users of a proxy', ['Host', 'localhost', 'X-User', 'a', 'X-User', 'b'], 'duplicate_header'],
    ['a token beyond ASCII', ['Host', 'localhost', 'Authorization', 'Bearer \u00e4'], 'duplicate_header'],
  ])('refuses %s', (_, headers, reason) => {
    expect(local(head(...headers))).toBe(reason);
  });

  it('judges each Host by itself, also after one that it has allowed', () => {
    const guard = createRequestGuard({ server, originRules: originRules() });
    const verdicts = ['localhost', 'evil.example', 'localhost', ''].map((host) => guard(head('Host', host)));
    expect(verdicts).toEqual([noHeaders, 'host_not_allowed', noHeaders, 'bad_host']);
  });
});

describe('the guard of a gateway on a network address', () => {
  it.each([
    ['mcp.example', undefined, noHeaders],
    ['mcp.example:443', app, noHeaders],
    ['other.example', undefined, 'host_not_allowed'],
    ['mcp.example', 'http://localhost', 'origin_not_allowed'],
  ])('allows only what is configured: %s from %s', (host, origin, verdict) => {
    expect(open(head('Host', host, ...(origin === undefined ? [] : ['Origin', origin])))).toBe(verdict);
  });
});

it('a name need not be one in a URL: the last part of a name in a network can be a number', () => {
  const guard = createRequestGuard({
    server,
    originRules: originRules({ host: '0.0.0.0', allowOrigin: [], allowHost: ['web.1'] }),
  });
  const verdicts = ['web.1', 'web.1:8080', 'web.1:65536'].map((host) => guard(head('Host', host)));
  expect(verdicts).toEqual([noHeaders, noHeaders, 'bad_host']);
});

describe('the headers for the server', () => {
  it('are those that the server forwards, and no others', () => {
    expect(local(head('Host', 'localhost', 'X-Tenant', 'a', 'X-Other', 'b'))).toEqual({ 'x-tenant': 'a' });
  });

  it('[P8] are refused if they are too large', () => {
    expect(local(head('Host', 'localhost', 'X-Tenant', 'a'.repeat(9_000)))).toBe('forwarded_too_large');
  });
});
