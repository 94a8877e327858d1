import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readRetry, requestDigest } from '../../../../src/core/protocol/modern/retry.ts';
import { read } from './read.ts';

const call = (params: string, method = 'tools/call'): string =>
  requestDigest(read(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`));

describe('the digest of a request', () => {
  it('is the same for its retries, whatever they add, and in whatever order', () => {
    const first = call('{"name":"x","arguments":{"a":1.0},"_meta":{"progressToken":1}}');
    expect(
      call('{"_meta":{"progressToken":2},"arguments":{"a":1.0},"name":"x","requestState":"s","inputResponses":{}}'),
    ).toBe(first);
    expect(call('{ "name" : "x", "arguments":{"a":1.0} }')).toBe(first);
    expect(call('{"n\\u0061me":"x","arguments":{"a":1.0}}')).toBe(first);
  });

  it.each([
    ['another argument', '{"name":"x","arguments":{"a":2}}'],
    ['another name', '{"name":"y","arguments":{"a":1}}'],
    ['one member less', '{"name":"x"}'],
    ['one member more', '{"name":"x","arguments":{"a":1},"uri":"u"}'],
    ['its own text as a value', '{"name":"x\\"9:arguments7:{\\"a\\":1}"}'],
  ])('is another one for %s', (_, params) => {
    expect(call(params)).not.toBe(call('{"name":"x","arguments":{"a":1}}'));
  });

  it('is another one if a character moves from the value of a member to its name', () => {
    expect(call('{"a1":1}')).not.toBe(call('{"a":11}'));
  });

  it('is another one for another method, and can be had without params', () => {
    expect(call('{"name":"x"}', 'prompts/get')).not.toBe(call('{"name":"x"}'));
    expect(requestDigest(read({ jsonrpc: '2.0', id: 1, method: 'tools/list' }))).toBe(call('{}', 'tools/list'));
  });

  it('is never the same for requests that differ', () => {
    const params = fc.dictionary(fc.constantFrom('a', 'b', 'ab', '1:'), fc.string());
    fc.assert(
      fc.property(params, params, (one, two) => {
        const sorted = (of: object) => JSON.stringify(Object.entries(of).sort());
        expect(call(JSON.stringify(one)) === call(JSON.stringify(two))).toBe(sorted(one) === sorted(two));
      }),
    );
  });
});

describe('a retry', () => {
  const retry = (params: string) =>
    readRetry(read(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`));

  it('is known by what it brings, as it was written', () => {
    const { state, answers } = retry('{"requestState":"a\\"b","inputResponses":{"k":{"n": 1.0},"__proto__":[]}}') ?? {};
    expect(state).toBe('a"b');
    expect([...(answers ?? [])].map(([key, text]) => [key, text.toString()])).toEqual([
      ['k', '{"n": 1.0}'],
      ['__proto__', '[]'],
    ]);
    expect(retry('{"name":"x"}')).toBeUndefined();
    expect(retry('{"inputResponses":{"k":{}}}')).toBeUndefined();
  });

  it.each([
    '{"requestState":7}',
    '{"requestState":[],"inputResponses":[]}',
    '{"inputResponses":"x","requestState":null}',
    '{"inputResponses":{"a":1,"a":2},"requestState":{}}',
  ])('with %s brings nothing that can be used', (params) => {
    expect(retry(params)).toEqual({ state: undefined, answers: new Map() });
  });
});
