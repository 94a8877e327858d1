import type { Socket } from 'node:net';
import { expect, it, vi } from 'vitest';

const asked: string[] = [];
vi.mock('node:net', async (load) => {
  const net = await load<typeof import('node:net')>();
  const noting =
    <Result>(ask: (text: string) => Result) =>
    (text: string): Result => {
      asked.push(text);
      return ask(text);
    };
  return { ...net, isIP: noting(net.isIP), isIPv6: noting(net.isIPv6) };
});

it('addresses of clients, hosts and networks are compared without the pattern of IPv6, which takes milliseconds', async () => {
  const { isPrivate } = await import('../../../src/core/auth/local-clients.ts');
  const { isLoopback } = await import('../../../src/core/auth/origin-rules.ts');
  const from = (remoteAddress: string): boolean => isPrivate({ remoteAddress } as Socket);
  expect(['127.0.0.1', '::1', '::ffff:10.1.2.3', 'fe80::1', '8.8.8.8', '2001:db8::1', ''].map(from)).toEqual([
    ...[true, true, true, true, false, false, false],
  ]);
  expect(['localhost', '127.0.0.1', '[::1]', 'example.com', '::2'].map(isLoopback)).toEqual([
    ...[true, true, true, false, false],
  ]);
  expect(asked).toEqual([]);
});
