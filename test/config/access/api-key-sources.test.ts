import { describe, expect, it } from 'vitest';
import { readKeysFile } from '../../../src/config/access/api-key-sources.ts';

describe('a file of keys', () => {
  const sha256 = 'Ab'.repeat(32);
  const read = (entry: object): { readonly keys: unknown; readonly faults: string[] } => {
    const faults: string[] = [];
    const keys = readKeysFile(JSON.stringify([{ name: 'ada', sha256, ...entry }]), 'k', (path, message) =>
      faults.push(`${path} ${message}`),
    );
    return { keys, faults };
  };

  it('has keys with and without an end and scopes', () => {
    expect(read({})).toEqual({ keys: [{ name: 'ada', sha256: sha256.toLowerCase() }], faults: [] });
    expect(read({ expires: '2027-01-31T00:00:00+01:00', scopes: ['a:b'] }).keys).toEqual([
      { name: 'ada', sha256: sha256.toLowerCase(), expiresAtMs: Date.UTC(2027, 0, 30, 23), scopes: ['a:b'] },
    ]);
    expect(read({ expires: '2028-02-29T12:30:00Z' }).keys).toHaveLength(1);
  });

  it.each([
    '2027-02-30T00:00:00Z',
    '2027-02-29T00:00:00Z',
    '2027-13-01T00:00:00Z',
    '2027-01-01T25:00:00Z',
    '2027-01-01T00:00:00',
    '2027-01-01',
    'tomorrow',
    1_800_000_000_000,
    null,
  ])('refuses %j as an end', (expires) => {
    expect(read({ expires })).toEqual({
      keys: undefined,
      faults: ['k: [0].expires must be a time such as 2027-01-31T00:00:00Z'],
    });
  });

  it('reports every fault of an entry', () => {
    expect(read({ name: '', sha256: 'x', scopes: ['a b'], more: 1 }).faults).toEqual([
      'k: [0].name must be 1 to 128 letters, digits and . _ @ + -, beginning with a letter or digit',
      'k: [0].sha256 must be 64 hexadecimal digits; mcp-gangway key alice creates a key and its hash, and printf %s KEY | sha256sum prints the hash of an existing key',
      'k: [0].scopes[0] must be a scope: visible ASCII without " and \\',
      'k: [0].more is not a known key; the keys are name, sha256, expires and scopes',
    ]);
  });
});
