import { describe, expect, it } from 'vitest';
import type { Identity } from '../../../src/core/auth/identity.ts';
import { createProxyIdentity, parseNetwork } from '../../../src/core/auth/proxy-identity.ts';
import { requestWith } from './authentication-request.ts';

const trusted = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8'];
const header = 'x-user';
const identify = createProxyIdentity({ header, trusted });
const ask = (value: string | undefined, remoteAddress: string) =>
  identify(requestWith(value === undefined ? {} : { [header]: value }, { remoteAddress }), undefined);

describe('the identity that a trusted proxy tells', () => {
  it.each(['10.1.2.3', '::ffff:10.1.2.3', '192.0.2.7', 'fd12::1'])('counts from %s', (address) => {
    expect(ask('alice@example.com', address)).toEqual({
      principal: { issuer: 'proxy', subject: 'alice@example.com', client: '' },
      scopes: undefined,
      expiresAtMs: undefined,
      claims: {},
    });
  });

  it.each(['11.1.2.3', '::ffff:11.1.2.3', '192.0.2.8', '127.0.0.1', '::1', 'fe80::1%eth0', ''])(
    'is refused from %j, whatever else the request has',
    (address) => {
      expect(ask('alice@example.com', address)).toEqual({ reason: 'untrusted_proxy' });
      expect(ask('', address)).toEqual({ reason: 'untrusted_proxy' });
    },
  );

  it('[A05] that is empty is nobody, and one that is not there leaves it to other credentials', () => {
    expect(ask('', '10.1.2.3')).toEqual({ reason: 'credentials_invalid' });
    expect(ask('  ', '10.1.2.3')).toEqual({ reason: 'credentials_invalid' });
    expect(ask(undefined, '10.1.2.3')).toBeUndefined();
    expect(ask(undefined, '11.1.2.3')).toBeUndefined();
  });

  it('has the scopes of its header, and none without it', () => {
    const scoped = createProxyIdentity({ header, scopesHeader: 'x-scopes', trusted });
    const scopesOf = (scopes?: string) => {
      const headers = { [header]: 'alice', ...(scopes !== undefined && { 'x-scopes': scopes }) };
      return (scoped(requestWith(headers, { remoteAddress: '10.0.0.1' }), undefined) as Identity).scopes;
    };
    expect([scopesOf('a b'), scopesOf('a,b, c'), scopesOf(''), scopesOf()]).toEqual([
      new Set(['a', 'b']),
      new Set(['a', 'b', 'c']),
      new Set(),
      new Set(),
    ]);
  });

  it('[P8] is made once for each user, of whom a thousand are remembered', () => {
    const first = ask('0', '10.0.0.1');
    expect(ask('0', '10.0.0.1')).toBe(first);
    for (let n = 1; n <= 1_000; n++) ask(String(n), '10.0.0.1');
    const again = ask('0', '10.0.0.1');
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });
});

describe('an address or network', () => {
  it.each([
    ['10.0.0.0/8', { address: '10.0.0.0', prefix: 8 }],
    ['10.0.0.1', { address: '10.0.0.1', prefix: 32 }],
    ['::1', { address: '::1', prefix: 128 }],
    ['fd00::/8', { address: 'fd00::', prefix: 8 }],
    ['0.0.0.0/0', { address: '0.0.0.0', prefix: 0 }],
    ['10.0.0.0/33', undefined],
    ['::/129', undefined],
    ['10.0.0.0/', undefined],
    ['10.0.0.0/8/8', undefined],
    ['10.0.0.0/-1', undefined],
    ['10.0.0', undefined],
    ['proxy.example.com', undefined],
    ['', undefined],
  ])('%j is %j', (text, network) => {
    expect(parseNetwork(text)).toEqual(network);
  });
});
