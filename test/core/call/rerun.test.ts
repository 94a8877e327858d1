import { describe, expect, it } from 'vitest';
import { RerunPolicy } from '../../../src/core/call/rerun.ts';
import type { Call } from '../../../src/core/call/session-calls.ts';
import { createMessage } from '../../../src/core/protocol/message/message.ts';
import { createFakeAnswer } from '../../support/fake-answer.ts';

const answer = createFakeAnswer(1);

/** A call as the session makes it: with its request where that may be needed. */
function aCall(reruns: RerunPolicy, method: string, params: unknown = {}, more: Partial<Call> = {}): Call {
  const request = createMessage({ id: 1, method, params });
  const kept = reruns.mayNeed(request) ? request : undefined;
  const base = { id: 1, method, progressToken: undefined, taskId: undefined, answer, request: kept };
  return { ...base, activeAt: 0, startedAt: 0, ...more };
}

it('[P8] a large request is not kept, whatever its method', () => {
  const reruns = new RerunPolicy('hints');
  const large = { uri: `file:///${'x'.repeat(16 * 1024)}` };
  expect(aCall(reruns, 'resources/read', large).request).toBeUndefined();
  expect(reruns.allows(aCall(reruns, 'resources/read', large), 'loss')).toBe(false);
  expect(reruns.allows(aCall(reruns, 'resources/read', { uri: 'file:///x' }), 'loss')).toBe(true);
});

/** The server has listed these tools. */
function list(reruns: RerunPolicy, tools: readonly { readonly name: string; readonly annotations?: unknown }[]): void {
  for (const item of tools) reruns.learn?.({ name: item.name, text: Buffer.from(JSON.stringify(item)) }, 'tool');
}

const harmless = [
  'ping',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
  'tasks/get',
  'tasks/list',
  'tasks/result',
];

describe('what is run again after the loss of its server', () => {
  it.each([...harmless, 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'])(
    '[F12] [P3] %s',
    (method) => {
      const reruns = new RerunPolicy('safe');
      expect(reruns.allows(aCall(reruns, method), 'loss')).toBe(true);
    },
  );

  it.each(['tools/call', 'initialize', 'tasks/cancel', 'x', 'TOOLS/LIST', '__proto__', ''])(
    '[F12] [P3] but not %j',
    (method) => {
      for (const mode of ['safe', 'hints'] as const) {
        const reruns = new RerunPolicy(mode);
        expect(reruns.allows(aCall(reruns, method), 'loss')).toBe(false);
      }
    },
  );

  it('[F12] [P3] and nothing that has asked its client, was cancelled or was run again before', () => {
    const reruns = new RerunPolicy('safe');
    const timer = setTimeout(() => undefined, 0);
    for (const more of [{ hasAsked: true }, { rerunAfter: 'loss' } as const, { cancelTimer: timer }]) {
      expect(reruns.allows(aCall(reruns, 'resources/read', {}, more), 'loss')).toBe(false);
    }
    clearTimeout(timer);
  });

  it('[F28] [P3] but what was run again because its POST broke, a moment before its server was lost', () => {
    const reruns = new RerunPolicy('safe');
    const call = aCall(reruns, 'resources/read', {}, { rerunAfter: 'broken_post' });
    expect([reruns.allows(call, 'broken_post'), reruns.allows(call, 'loss')]).toEqual([false, true]);
  });
});

describe('hints', () => {
  const allows = (reruns: RerunPolicy, name: unknown): boolean =>
    reruns.allows(aCall(reruns, 'tools/call', { name }), 'loss');

  it('[F12] [P3] count as the newest list has them, and only under rerun: hints', () => {
    const reruns = new RerunPolicy('hints');
    list(reruns, [
      { name: 'reads', annotations: { readOnlyHint: true } },
      { name: 'idem', annotations: { idempotentHint: true } },
      { name: 'text', annotations: { readOnlyHint: 'true' } },
      { name: 'none', annotations: null },
      { name: 'number', annotations: 5 },
      { name: 'bare' },
    ]);
    const harmless = ['reads', 'idem', 'text', 'none', 'number', 'bare', 'other'].filter((name) =>
      allows(reruns, name),
    );
    expect(harmless).toEqual(['reads', 'idem']);
    for (const name of [undefined, null, 5, { toString: 1, valueOf: 1 }]) expect(allows(reruns, name)).toBe(false);
    reruns.learn?.({ name: 'prompt', text: Buffer.from('{"annotations":{"readOnlyHint":true}}') }, 'prompt');
    expect(allows(reruns, 'prompt')).toBe(false);
    list(reruns, [{ name: 'reads' }]);
    expect(['reads', 'idem'].map((name) => allows(reruns, name))).toEqual([false, true]);

    const safe = new RerunPolicy('safe');
    expect(safe.learn).toBeUndefined();
    expect([allows(safe, 'reads'), safe.mayNeed(createMessage({ id: 1, method: 'tools/call' }))]).toEqual([
      false,
      false,
    ]);
  });

  it('[F12] [P8] of ever new tools do not fill the memory: those beyond the limit are not run again', () => {
    const reruns = new RerunPolicy('hints');
    for (let page = 0; page < 20; page++) {
      const tools = Array.from({ length: 1_000 }, (_, n) => ({
        name: `${page}.${n}`,
        annotations: { readOnlyHint: true },
      }));
      list(reruns, tools);
    }
    expect([allows(reruns, '0.0'), allows(reruns, '9.999'), allows(reruns, '19.999')]).toEqual([true, true, false]);
    const long = 'x'.repeat(1_000);
    const other = new RerunPolicy('hints');
    list(other, [{ name: long, annotations: { readOnlyHint: true } }]);
    expect(allows(other, long)).toBe(false);
  });
});
