import { describe, expect, it } from 'vitest';
import { parseAffinity } from '../../../src/core/protocol/affinity.ts';
import { createMessage } from '../../../src/core/protocol/message/message.ts';

const affinityOf = (text: string) => {
  const affinity = parseAffinity(text);
  if (affinity === undefined) throw new Error(`${text} is no template`);
  return affinity;
};
const alice = { issuer: 'keys', subject: 'alice', client: '' };
const initialize = (name?: unknown) =>
  createMessage({ id: 0, method: 'initialize', params: { clientInfo: name === undefined ? {} : { name } } });
const call = (meta: object, method = 'tools/call') => createMessage({ id: 1, method, params: { _meta: meta } });

describe('an affinity template', () => {
  it.each([
    '',
    'user',
    '{}',
    '{user',
    '{cookie:a}',
    '{header:}',
    'x{user}',
    '{user}x{client}',
    '{user}'.repeat(9),
    '{header:a}{nobody}',
  ])('%j is refused', (text) => {
    expect(parseAffinity(text)).toBeUndefined();
  });

  it('reads headers in any case and claims, and fails if one of them is missing or too long', () => {
    const affinity = affinityOf('{header:X-Person} {claim:sub}');
    expect(affinity.headers).toEqual(['x-person']);
    const of = (person: string | readonly string[] | undefined, claims: object) =>
      affinity.readSender({ 'x-person': person }, claims as Record<string, unknown>);
    expect(of('eve', { sub: 7 })).toEqual({ 'header:x-person': 'eve', 'claim:sub': '7' });
    expect(of('', { sub: 'a' })).toBeUndefined();
    expect(of(['eve', 'bob'], { sub: 'a' })).toBeUndefined();
    expect(of('x'.repeat(1_025), { sub: 'a' })).toBeUndefined();
    expect(of('eve', {})).toBeUndefined();
    expect(of('eve', Object.create({ sub: 'inherited' }))).toBeUndefined();
    expect(of('eve', { sub: { a: 1 } })).toBeUndefined();
  });

  it('is undecided until a request depends on a state, and own if that request names none', () => {
    const affinity = affinityOf('{meta:openai/session}');
    expect(affinity.placeOfSession(alice, initialize('c'), undefined)).toEqual({ kind: 'undecided' });
    expect(affinity.readMeta(call({}, 'tools/list'))).toBeUndefined();
    const none = affinity.readMeta(call({}));
    expect(affinity.placeOfSession(alice, initialize('c'), none)).toEqual({ kind: 'own' });
    const mark = affinity.readMeta(call({ 'openai/session': 'v1' }));
    expect(affinity.placeOfSession(alice, initialize('c'), mark)).toMatchObject({ kind: 'named' });
    expect(affinity.readMeta(call({ 'openai/session': 'v2' }))).not.toBe(mark);
    expect(affinity.readMeta(call({ 'openai/session': 'v1' }, 'tools/list'))).toBe(mark);
  });

  it('has one state for each user and each name of a client', () => {
    const affinity = affinityOf('{user} {client}');
    const marks = [alice, { ...alice, subject: 'bob' }].flatMap((principal) =>
      ['c', 'd'].map((name) => JSON.stringify(affinity.placeOfSession(principal, initialize(name), undefined))),
    );
    expect(new Set(marks).size).toBe(4);
    expect(affinity.placeOfSession(alice, initialize(), undefined)).toEqual({ kind: 'own' });
  });
});
