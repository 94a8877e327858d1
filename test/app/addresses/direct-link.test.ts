import { isIP } from 'node:net';
import { describe, expect, it } from 'vitest';
import { advertisedLink, directLinkOf } from '../../../src/app/addresses/direct-link.ts';

const keys = { all: async () => [Buffer.alloc(32)] as const, reread: async () => [] };
const nothing = { linkHost: undefined, linkPort: 0, linkAddress: undefined };

describe('the address for direct connections of other instances', () => {
  it('is none unless the operator chooses a host to listen on', () => {
    expect(directLinkOf({ ...nothing, linkPort: 9465, linkAddress: 'gateway-1' }, keys)).toBeUndefined();
  });

  it.each([
    [{ linkHost: '10.1.2.3' }, '10.1.2.3'],
    [{ linkHost: '10.1.2.3', linkPort: 9465 }, '10.1.2.3:9465'],
    [{ linkHost: '0.0.0.0', linkPort: 9465, linkAddress: 'gateway-1' }, 'gateway-1:9465'],
    [{ linkHost: '0.0.0.0', linkPort: 9465, linkAddress: 'gateway-1:19465' }, 'gateway-1:19465'],
    [{ linkHost: '::1', linkPort: 9465 }, '[::1]:9465'],
    [{ linkHost: '::', linkPort: 0, linkAddress: '[2001:db8::1]:9465' }, '[2001:db8::1]:9465'],
  ])('of %j is %s', (options, address) => {
    expect(advertisedLink({ ...nothing, ...options })).toBe(address);
  });

  it('of a wildcard is an address of the machine', () => {
    const address = advertisedLink({ ...nothing, linkHost: '0.0.0.0', linkPort: 9465 }) ?? '';
    expect(isIP(address.replace(/:9465$/, ''))).toBe(4);
    expect(address).not.toContain('0.0.0.0');
  });
});
