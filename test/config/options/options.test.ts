import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { defaultsBranch, flagsOf, options, variablesOf } from '../../../src/config/options/option-names.ts';
import { gatewayLeaves, gatewayOptions, serverLeaves } from '../../../src/config/options/options.ts';
import { nearestName } from '../../../src/core/util/text/nearest-name.ts';

describe('the table of options', () => {
  it.each([...options])('%s has a default that its own schema takes', (_path, option) => {
    const { default: value, format } = option;
    const written = typeof value === 'number' && format !== undefined ? format(value) : value;
    expect(value === undefined || option.schema.parse(written)).toEqual(value === undefined || value);
  });

  it.each([...options])('%s has a description, and its kind has its unit', (_path, { description, kind, unit }) => {
    expect(description).toMatch(/^[A-Z].*\.$/);
    expect(unit).toBe(
      new Map<string, string>([
        ['duration', 'Ms'],
        ['size', 'Bytes'],
      ]).get(kind) ?? '',
    );
  });

  it('has no path of a server that is one of the gateway, and no branch for servers', () => {
    expect([...gatewayLeaves.keys()].filter((path) => serverLeaves.has(path))).toEqual([]);
    expect([...gatewayLeaves.keys()].filter((path) => path.startsWith(`${defaultsBranch}.`))).toEqual([]);
  });
});

describe('the faults of a configuration', () => {
  it('name only options that exist', () => {
    const folder = new URL('../../../src/config/', import.meta.url);
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
    const named = sources.flatMap((name) =>
      [...readFileSync(new URL(name, folder), 'utf8').matchAll(/nameOf\('([^']+)'\)/g)].map(([, path = '']) => path),
    );
    expect(named.length).toBeGreaterThan(50);
    expect(named.filter((path) => !gatewayLeaves.has(path) && !serverLeaves.has(path))).toEqual([]);
  });
});

describe('schemas', () => {
  it.each([
    ['listen.port', 0, true],
    ['listen.port', 65535, true],
    ['listen.port', 65536, false],
    ['listen.port', -1, false],
    ['listen.port', 1.5, false],
    ['listen.port', '80', false],
    ['listen.port', Number.NaN, false],
    ['listen.path', '/mcp', true],
    ['listen.path', '/a/b.c', true],
    ['listen.path', 'mcp', false],
    ['listen.path', '/', false],
    ['listen.path', '/mcp/', false],
    ['listen.path', '/mcp?x=1', false],
    ['listen.path', '/a/../b', false],
    ['listen.path', '/healthz', false],
    ['listen.path', '/healthzz', true],
    ['listen.host', '::1', true],
    ['listen.host', '', false],
    ['listen.host', 'http://x', false],
    ['observe.logLevel', 'silent', true],
    ['observe.logLevel', 'verbose', false],
    ['observe.logLevel', 'info,store=debug', true],
    ['observe.logLevel', 'info,disk=debug', false],
    ['observe.logLevel', 1, false],
    ['observe.logFormat', 'json', true],
    ['observe.logFormat', 'html', false],
    ['listen.allowedOrigins', ['https://a.example:8443', '*', 'vscode-webview://x'], true],
    ['listen.allowedOrigins', ['https://a.example/path'], false],
    ['listen.allowedOrigins', ['a.example'], false],
    ['listen.allowedOrigins', 'https://a.example', false],
    ['listen.allowedHosts', ['mcp.example.com', 'localhost:8080', '[::1]:80'], true],
    ['listen.allowedHosts', ['http://x'], false],
    ['listen.allowedOrigins', ['https://*.example'], false],
    ['listen.allowedHosts', ['*'], true],
    ['limits.total.sessions', 0, false],
    ['limits.request.body', '0', false],
    ['limits.request.body', 4096, false],
    ['limits.request.body', '4096', false],
    ['limits.request.body', '4KiB', true],
    ['sse.heartbeat', '25d', false],
    ['sse.heartbeat', '24d', true],
    ['sse.heartbeat', 5000, false],
    ['timeouts.drain', 0, true],
    ['timeouts.drain', '0', true],
    ['defaults.cwd', '/srv', true],
    ['defaults.cwd', '', false],
    ['defaults.cwd', 'a\0b', false],
    ['defaults.env', { A: '' }, true],
    ['defaults.env', { A: 1 }, false],
    ['defaults.env', { '': 'x' }, false],
    ['defaults.env', { 'A=B': 'x' }, false],
    ['defaults.env', ['A=1'], false],
    ['replay.store', 'auto', true],
    ['replay.store', 'memory', true],
    ['replay.store', 'file:/var/lib/mcp-gangway', true],
    ['replay.store', 'file:sessions', true],
    ['replay.store', 'file:', false],
    ['replay.store', 'file: ', false],
    ['replay.store', 'file:/', false],
    ['replay.store', '/var/lib/mcp-gangway', false],
    ['replay.store', 'redis', false],
    ['replay.store', 'file:/a\0b', false],
    ['cluster.redis', 'redis://x', true],
    ['cluster.redis', 'rediss://user:p%40ss@[::1]:6380/3', true],
    ['cluster.redis', 'redis+sentinel://a:1,b:2/main', true],
    ['cluster.redis', 'redis+sentinel://a', false],
    ['cluster.redis', 'redis+cluster://a,b', true],
    ['cluster.redis', 'redis+cluster://a/1', false],
    ['cluster.redis', 'redis://a,b', false],
    ['cluster.redis', 'http://x', false],
    ['cluster.redis', 'x:6379', false],
    ['cluster.redis', '', false],
    ['cluster.prefix', 'team:gangway_1.a-b', true],
    ['cluster.prefix', '', false],
    ['cluster.prefix', 'a{b}', false],
    ['cluster.prefix', 'x'.repeat(65), false],
    ['cluster.tls.ca', '/etc/ca.pem', true],
    ['cluster.tls.ca', '', false],
    ['cluster.tls.cert', 'a\0b', false],
    ['cluster.tls.key', '', false],
    ['cluster.lease', '99ms', false],
    ['defaults.process.user', '1000:1000', true],
    ['defaults.process.user', '1000', false],
    ['defaults.process.user', '4294967295:0', false],
    ['defaults.process.user', 'root:root', false],
    ['cluster.stateKeys', ['k'.repeat(32), 'other+/='.repeat(5)], true],
    ['cluster.stateKeys', ['k'.repeat(31)], false],
    ['cluster.stateKeys', [`${'k'.repeat(32)},x`], false],
  ])('%s: %j is valid: %s', (key, value, isValid) => {
    expect(options.get(key)?.schema.safeParse(value).success).toBe(isValid);
  });

  it('compares origins and hosts in lower case', () => {
    expect(gatewayOptions.listen.allowedOrigins.schema.parse(['HTTPS://App.Example'])).toEqual(['https://app.example']);
    expect(gatewayOptions.listen.allowedHosts.schema.parse(['MCP.Example'])).toEqual(['mcp.example']);
  });
});

describe('names', () => {
  it.each([
    ['listen.host', '--host', 'GANGWAY_HOST'],
    ['limits.request.body', '--limits.request.body', 'GANGWAY_LIMITS_REQUEST_BODY'],
  ])('%s is %s and %s', (key, flag, variable) => {
    expect([flagsOf(key)[0], variablesOf(key)[0]]).toEqual([flag, variable]);
  });

  it.each([
    ['listen.prot', 'listen.port'],
    ['limits.request.bdy', 'limits.request.body'],
    ['OBSERVE.LOGLEVEL', 'observe.logLevel'],
    ['zzzzzz', undefined],
    ['', undefined],
    ['port'.repeat(1000), undefined],
  ])('nearest to %s is %s', (unknown, nearest) => {
    expect(nearestName(unknown, [...options.keys()])).toBe(nearest);
  });

  it('a name of three letters allows one mistake', () => {
    expect(nearestName('--url', ['--era'])).toBeUndefined();
    expect(nearestName('--ear', ['--era'])).toBe('--era');
  });
});
