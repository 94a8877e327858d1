import { describe, expect, it } from 'vitest';
import { readDecision } from '../../../src/features/policy/decision.ts';

const read = (answer: unknown, phase: 'request' | 'result' = 'request') =>
  readDecision(Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer)), phase);

describe('an answer of a policy service', () => {
  it('allows, denies with words on one line, changes, or asks', () => {
    expect(read({ result: true })).toEqual({ kind: 'allow' });
    expect(read({ result: { allow: true, other: [1] }, decision_id: 'x' })).toEqual({ kind: 'allow' });
    expect(read({ result: false })).toEqual({ kind: 'deny', why: undefined });
    const why = `No\n\u0007way${'!'.repeat(600)}`;
    expect(read({ result: { allow: false, reason: why } })).toEqual({
      kind: 'deny',
      why: `No way${'!'.repeat(494)}`,
    });
    expect(read('{"result":{"allow":true,"arguments":{"a":\n12345678901234567890}}}')).toEqual({
      kind: 'change',
      by: '{"a": 12345678901234567890}',
    });
    expect(read({ result: { allow: true, result: {} } })).toEqual({ kind: 'allow' });
    expect(read({ result: { allow: true, result: { content: [] } } }, 'result')).toEqual({
      kind: 'change',
      by: '{"content":[]}',
    });
    expect(read({ result: { approval: { message: 'Really?' } } })).toEqual({ kind: 'ask', question: 'Really?' });
    expect(read({ result: { allow: true, approval: 'Really?' } })).toEqual({ kind: 'ask', question: 'Really?' });
    expect(read({ result: { allow: true, approval: false } })).toEqual({ kind: 'allow' });
  });

  it.each<[string, unknown]>([
    ['no JSON', '{'],
    ['no result', {}],
    ['a text', { result: 'true' }],
    ['a list', { result: [true] }],
    ['an allow that is a text', { result: { allow: 'true' } }],
    ['null', { result: null }],
    ['a key twice', '{"result":{"allow":false,"allow":true}}'],
    ['a change to a list', { result: { allow: true, arguments: [] } }],
  ])('that is %s is no decision', (_, answer) => {
    expect(read(answer)).toMatch(/^The answer .+\.$/);
  });

  it('cannot ask about a result', () => {
    expect(read({ result: { approval: true } }, 'result')).toContain('only a request');
  });
});
