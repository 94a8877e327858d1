import { describe, expect, it } from 'vitest';
import {
  type ClientCredentials,
  credentialHeaders,
  parseCredential,
  resolveCredentials,
} from '../../../../src/core/protocol/http/client-credentials.ts';
import { maxForwardedBytes } from '../../../../src/core/protocol/http/forwarded-headers.ts';

const credentialsOf = (as: ClientCredentials['as'], texts: Readonly<Record<string, string>>): ClientCredentials => ({
  as,
  parts: new Map(Object.entries(texts).map(([name, text]) => [name, parseCredential(text) ?? []])),
});

describe('parseCredential', () => {
  it('reads text, headers and claims in their order', () => {
    expect(parseCredential('Bearer {header:X-Token}:{claim:https://a.example/org}!')).toEqual([
      { kind: 'text', text: 'Bearer ' },
      { kind: 'header', name: 'x-token' },
      { kind: 'text', text: ':' },
      { kind: 'claim', name: 'https://a.example/org' },
      { kind: 'text', text: '!' },
    ]);
  });

  it.each(['', 'secret', '{header:}', '{cookie:a}', '{header:a', 'a}', '{{header:a}}', '{header:a} {b}'])(
    'refuses %j, which names nothing, or has braces that stand for nothing',
    (text) => expect(parseCredential(text)).toBeUndefined(),
  );
});

describe('bringCredentials', () => {
  const both = credentialsOf('variables', { TOKEN: '{header:X-Token}', TENANT: 'org-{claim:org}' });

  it('makes the values of one request, beside what is forwarded', () => {
    const brought = resolveCredentials(both, { 'x-token': 't', cookie: 'c' }, { org: 7 }, { 'x-a': '1' });
    expect(brought).toEqual({ ok: true, values: { 'x-a': '1', TOKEN: 't', TENANT: 'org-7' } });
    expect(credentialHeaders(both)).toEqual(['x-token']);
  });

  it.each<[string, Record<string, string>, Record<string, unknown>, string, string]>([
    ['a header', {}, { org: 'a' }, 'header', 'x-token'],
    ['an empty header', { 'x-token': '' }, { org: 'a' }, 'header', 'x-token'],
    ['a header for the next hop', { 'x-token': 't', connection: 'x-token' }, { org: 'a' }, 'header', 'x-token'],
    ['a claim', { 'x-token': 't' }, {}, 'claim', 'org'],
    ['a claim that every object has', { 'x-token': 't' }, Object.create({ org: 'a' }), 'claim', 'org'],
    ['a claim that is no text', { 'x-token': 't' }, { org: ['a'] }, 'claim', 'org'],
    ['a claim with NUL', { 'x-token': 't' }, { org: 'a\0b' }, 'claim', 'org'],
    ['a function for bash in a header', { 'x-token': '() { :;}; id' }, { org: 'a' }, 'header', 'x-token'],
  ])('names %s that is missing, and no value', (_, headers, claims, lacks, name) => {
    expect(resolveCredentials(both, headers, claims, {})).toEqual({ ok: false, lacks, name });
  });

  it('lets a claim into a header only as visible ASCII: with a line break it could be another header', () => {
    const header = credentialsOf('headers', { 'x-user': '{claim:name}' });
    expect(resolveCredentials(header, {}, { name: 'Jos\u00e9' }, {})).toMatchObject({ ok: false });
    expect(resolveCredentials(header, {}, { name: 'a\r\nx-admin: 1' }, {})).toMatchObject({ ok: false });
    const variable = credentialsOf('variables', { USER_NAME: '{claim:name}' });
    expect(resolveCredentials(variable, {}, { name: 'Jos\u00e9' }, {})).toMatchObject({ ok: true });
  });

  it('has no room for more than goes to another instance', () => {
    const long = 'x'.repeat(maxForwardedBytes);
    const room = { ok: false, lacks: 'room' };
    expect(resolveCredentials(both, { 'x-token': long }, { org: 'a' }, {})).toEqual(room);
    expect(resolveCredentials(both, { 'x-token': 't' }, { org: long }, {})).toEqual(room);
  });
});
