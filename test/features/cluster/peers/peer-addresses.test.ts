import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { GatewayConfig } from '../../../../src/config/config.ts';
import { advertisedLink, peerAddressesOf } from '../../../../src/features/cluster/peers/peer-addresses.ts';

const usual = { host: 'local', port: 0, address: undefined };
const linkTo = (link: Partial<{ host: string; port: number; address: string | undefined }>) =>
  ({ cluster: { link: { ...usual, ...link } } }) as unknown as GatewayConfig;

const temporary = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'gangway-link-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
};

describe('the directory for sockets of instances on this host', () => {
  const linkIn = (directory: string, host = 'local') => {
    const notes: string[] = [];
    const sockets = { directory, onUnable: (detail: string) => void notes.push(detail) };
    return { addresses: peerAddressesOf(linkTo({ host }), sockets), notes };
  };

  it('is made for this user alone, whatever the host', () => {
    const directory = join(temporary(), 'link');
    expect(linkIn(directory).addresses).toEqual({ directory, network: undefined });
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    const network = { host: '10.1.2.3', port: 0, advertised: '10.1.2.3' };
    expect(linkIn(directory, '10.1.2.3').addresses).toEqual({ directory, network });
  });

  it.each([
    ['open to other users', (path: string) => mkdirSync(path, { mode: 0o755 }), ''],
    ['a symbolic link', (path: string) => symlinkSync('.', path), ''],
    ['in a directory that is missing', () => undefined, '/missing'],
    ['too long for a socket', () => undefined, '/x'.repeat(100)],
  ])('is not used if it is %s', (_, prepare, suffix) => {
    const path = join(temporary(), 'link');
    prepare(path);
    const { addresses, notes } = linkIn(path + suffix);
    expect(addresses).toEqual({ directory: undefined, network: undefined });
    expect(notes).toHaveLength(1);
  });
});

describe('the address for requests of other hosts', () => {
  it('is none if only instances of this host are accepted', () => {
    expect(advertisedLink(linkTo({ host: 'local', port: 9465, address: 'gateway-1' }))).toBeUndefined();
  });

  it.each([
    [{ host: '10.1.2.3' }, '10.1.2.3'],
    [{ host: '10.1.2.3', port: 9465 }, '10.1.2.3:9465'],
    [{ host: '0.0.0.0', port: 9465, address: 'gateway-1' }, 'gateway-1:9465'],
    [{ host: '0.0.0.0', port: 9465, address: 'gateway-1:19465' }, 'gateway-1:19465'],
    [{ host: '::1', port: 9465 }, '[::1]:9465'],
    [{ host: '::', port: 0, address: '[2001:db8::1]:9465' }, '[2001:db8::1]:9465'],
  ])('of %j is %s', (options, address) => {
    expect(advertisedLink(linkTo(options))).toBe(address);
  });

  it('of a wildcard is an address of the machine', () => {
    const address = advertisedLink(linkTo({ host: '0.0.0.0', port: 9465 })) ?? '';
    expect(isIP(address.replace(/:9465$/, ''))).toBe(4);
    expect(address).not.toContain('0.0.0.0');
  });
});
