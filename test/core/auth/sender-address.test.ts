import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { createAddressReader, createProxyCheck } from '../../../src/core/auth/sender-address.ts';

const from = (remoteAddress: string | undefined, forwarded?: string): IncomingMessage =>
  ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;

test('the address of a sender is that of its connection', () => {
  const addressOf = createAddressReader([]);
  expect(addressOf(from('::ffff:10.0.0.7'))).toBe('10.0.0.7');
  expect(addressOf(from('2001:db8::7'))).toBe('2001:db8::7');
  expect(addressOf(from('10.0.0.7', '192.0.2.1'))).toBe('10.0.0.7');
  expect(addressOf(from(undefined))).toBeUndefined();
});

test('behind a trusted proxy it is the one that the proxy has added last', () => {
  const addressOf = createAddressReader(['10.0.0.0/8']);
  expect(addressOf(from('10.0.0.7', '6.6.6.6, 192.0.2.1'))).toBe('192.0.2.1');
  expect(addressOf(from('192.0.2.9', '6.6.6.6'))).toBe('192.0.2.9');
  for (const header of [undefined, '', 'unknown', '<script>'])
    expect(addressOf(from('10.0.0.7', header))).toBe('10.0.0.7');
});

test('a proxy is trusted, or adds a header in a private network', () => {
  const isOfProxy = createProxyCheck(['192.0.2.0/24']);
  expect(isOfProxy(from('192.0.2.9'))).toBe(true);
  expect(isOfProxy(from('::ffff:10.0.0.7', '198.51.100.1'))).toBe(true);
  expect(isOfProxy(from('fd00::7', '198.51.100.1'))).toBe(true);
  expect(isOfProxy(from('10.0.0.7'))).toBe(false);
  expect(isOfProxy(from('203.0.113.5', '198.51.100.1'))).toBe(false);
});
