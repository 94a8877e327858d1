import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { anonymousIdentity } from '../../../src/core/auth/identity.ts';
import { LocalClients } from '../../../src/core/auth/local-clients.ts';

const requestOf = (
  headers: Readonly<Record<string, string>>,
  httpVersion = '1.1',
  remoteAddress = '127.0.0.1',
): IncomingMessage => ({ headers, httpVersion, socket: { remoteAddress } }) as unknown as IncomingMessage;

function createFixture() {
  let reports = 0;
  const clients = new LocalClients(() => {
    reports += 1;
  });
  return { clients, reports: () => reports };
}

describe('the clients of a gateway without authentication', () => {
  it('are alone while no request has come through a proxy', () => {
    const { clients, reports } = createFixture();
    expect(clients.authenticate(requestOf({ host: '127.0.0.1:8080', 'user-agent': 'x' }))).toBe(anonymousIdentity);
    expect([clients.areAlone, reports()]).toEqual([true, 0]);
  });

  it.each([
    ['Forwarded', { forwarded: 'for=203.0.113.7' }, '1.1'],
    ['Via', { via: '1.1 vegur' }, '1.1'],
    ['X-Forwarded-For', { 'x-forwarded-for': '203.0.113.7' }, '1.1'],
    ['X-Real-IP', { 'x-real-ip': '203.0.113.7' }, '1.1'],
    ['CF-Connecting-IP', { 'cf-connecting-ip': '203.0.113.7' }, '1.1'],
    ['HTTP/1.0, as nginx speaks it', {}, '1.0'],
  ])('[P11] may be anybody from the first request with %s on, which is reported once', (_, headers, version) => {
    const { clients, reports } = createFixture();
    expect(clients.authenticate(requestOf(headers, version))).toBe(anonymousIdentity);
    expect([clients.areAlone, reports()]).toEqual([false, 1]);
    clients.authenticate(requestOf(headers, version));
    clients.authenticate(requestOf({}));
    expect([clients.areAlone, reports()]).toEqual([false, 1]);
  });

  it.each(['127.0.0.1', '::1', '172.17.0.1', '::ffff:192.168.1.20', '10.0.0.7', 'fd00::1'])(
    'are one user at a loopback or private address: %s',
    (address) => {
      const { clients } = createFixture();
      clients.authenticate(requestOf({}, '1.1', address));
      expect(clients.areAlone).toBe(true);
    },
  );

  it.each(['203.0.113.7', '2001:db8::7', '172.32.0.1'])(
    '[P11] may be anybody from the first request of a public address on: %s',
    (address) => {
      const { clients, reports } = createFixture();
      clients.authenticate(requestOf({}, '1.1', address));
      expect([clients.areAlone, reports()]).toEqual([false, 1]);
    },
  );
});
