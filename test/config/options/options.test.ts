import { describe, expect, it } from 'vitest';
import { environmentNameOf, flagOf } from '../../../src/config/options/option-names.ts';
import { globalOptions, type OptionTable, serverOptions } from '../../../src/config/options/options.ts';
import { nearestName } from '../../../src/util/text/nearest-name.ts';

const all: OptionTable = { ...globalOptions, ...serverOptions };

describe('the table of options', () => {
  it.each(Object.entries(all))('%s has a default that its own schema takes', (_key, option) => {
    const { default: value, format } = option;
    const written = typeof value === 'number' && format !== undefined ? format(value) : value;
    expect(value === undefined || option.schema.parse(written)).toEqual(value === undefined || value);
  });

  it.each(Object.entries(all))('%s has a description, and its kind has its unit', (key, { description, kind }) => {
    expect(description).toMatch(/^[A-Z].*\.$/);
    expect(kind === 'duration').toBe(/Ms$|AgeS$|Seconds$/.test(key));
    expect(kind === 'size').toBe(/Bytes$|BytesInFlight$/.test(key));
  });

  it('has no key twice', () => {
    expect(Object.keys(globalOptions).filter((key) => Object.hasOwn(serverOptions, key))).toEqual([]);
  });
});

describe('schemas', () => {
  it.each([
    ['port', 0, true],
    ['port', 65535, true],
    ['port', 65536, false],
    ['port', -1, false],
    ['port', 1.5, false],
    ['port', '80', false],
    ['port', Number.NaN, false],
    ['path', '/mcp', true],
    ['path', '/a/b.c', true],
    ['path', 'mcp', false],
    ['path', '/', false],
    ['path', '/mcp/', false],
    ['path', '/mcp?x=1', false],
    ['path', '/a/../b', false],
    ['path', '/healthz', false],
    ['path', '/healthzz', true],
    ['host', '::1', true],
    ['host', '', false],
    ['host', 'http://x', false],
    ['logLevel', 'silent', true],
    ['logLevel', 'verbose', false],
    ['logLevel', 'info,store=debug', true],
    ['logLevel', 'info,disk=debug', false],
    ['logLevel', 1, false],
    ['logFormat', 'json', true],
    ['logFormat', 'html', false],
    ['allowOrigin', ['https://a.example:8443', '*', 'vscode-webview://x'], true],
    ['allowOrigin', ['https://a.example/path'], false],
    ['allowOrigin', ['a.example'], false],
    ['allowOrigin', 'https://a.example', false],
    ['allowHost', ['mcp.example.com', 'localhost:8080', '[::1]:80'], true],
    ['allowHost', ['http://x'], false],
    ['allowOrigin', ['https://*.example'], false],
    ['allowHost', ['*'], true],
    ['maxSessions', 0, false],
    ['maxEventBytes', '0', false],
    ['maxEventBytes', 4096, false],
    ['maxEventBytes', '4096', false],
    ['maxEventBytes', '4KiB', true],
    ['keepAliveMs', '25d', false],
    ['keepAliveMs', '24d', true],
    ['keepAliveMs', 5000, false],
    ['drainMs', 0, true],
    ['drainMs', '0', true],
    ['cwd', '/srv', true],
    ['cwd', '', false],
    ['cwd', 'a\0b', false],
    ['env', { A: '' }, true],
    ['env', { A: 1 }, false],
    ['env', { '': 'x' }, false],
    ['env', { 'A=B': 'x' }, false],
    ['env', ['A=1'], false],
    ['store', 'memory', true],
    ['store', 'file:/var/lib/mcp-gangway', true],
    ['store', 'file:sessions', true],
    ['store', 'file:', false],
    ['store', 'file: ', false],
    ['store', 'file:/', false],
    ['store', '/var/lib/mcp-gangway', false],
    ['store', 'redis', false],
    ['store', 'file:/a\0b', false],
    ['redis', 'redis://x', true],
    ['redis', 'rediss://user:p%40ss@[::1]:6380/3', true],
    ['redis', 'redis+sentinel://a:1,b:2/main', true],
    ['redis', 'redis+sentinel://a', false],
    ['redis', 'redis+cluster://a,b', true],
    ['redis', 'redis+cluster://a/1', false],
    ['redis', 'redis://a,b', false],
    ['redis', 'http://x', false],
    ['redis', 'x:6379', false],
    ['redis', '', false],
    ['redisPrefix', 'team:gangway_1.a-b', true],
    ['redisPrefix', '', false],
    ['redisPrefix', 'a{b}', false],
    ['redisPrefix', 'x'.repeat(65), false],
    ['redisCa', '/etc/ca.pem', true],
    ['redisCa', '', false],
    ['redisCert', 'a\0b', false],
    ['redisKey', '', false],
    ['redisTimeoutMs', '9ms', false],
    ['redisWaitMs', '0', false],
    ['leaseMs', '99ms', false],
    ['leaseRenewMs', '9ms', false],
    ['leaseMarginMs', 0, false],
    ['recordTtlMs', '25d', false],
    ['mailboxMaxBytes', 0, false],
    ['stateKey', ['k'.repeat(32), 'other+/='.repeat(5)], true],
    ['stateKey', ['k'.repeat(31)], false],
    ['stateKey', [`${'k'.repeat(32)},x`], false],
  ])('%s: %j is valid: %s', (key, value, isValid) => {
    expect(all[key]?.schema.safeParse(value).success).toBe(isValid);
  });

  it('compares origins and hosts in lower case', () => {
    expect(globalOptions.allowOrigin.schema.parse(['HTTPS://App.Example'])).toEqual(['https://app.example']);
    expect(globalOptions.allowHost.schema.parse(['MCP.Example'])).toEqual(['mcp.example']);
  });
});

describe('names', () => {
  it.each([
    ['host', '--host', 'GANGWAY_HOST'],
    ['maxBodyBytes', '--limits.request.body', 'GANGWAY_LIMITS_REQUEST_BODY'],
  ])('%s is %s and %s', (key, flag, variable) => {
    expect([flagOf(key), environmentNameOf(key)]).toEqual([flag, variable]);
  });

  it.each([
    ['prot', 'port'],
    ['max_body_bytes', 'maxBodyBytes'],
    ['LOGLEVEL', 'logLevel'],
    ['zzzzzz', undefined],
    ['', undefined],
    ['port'.repeat(1000), undefined],
  ])('nearest to %s is %s', (unknown, nearest) => {
    expect(nearestName(unknown, Object.keys(all))).toBe(nearest);
  });
});
