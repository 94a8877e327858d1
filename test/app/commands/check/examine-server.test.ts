import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { examineEras } from '../../../../src/app/commands/check/examine-server.ts';
import { discovered } from '../../../modern/shared-fixture.ts';
import { createFakeServer } from '../../../support/fake-backend.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A server of the modern era that answers `initialize` with this, or not at all. */
function check(initialized: object | undefined) {
  const { open, living } = createFakeServer(({ id, method }, backend) =>
    queueMicrotask(() => {
      const outcome = method === 'server/discover' ? { result: { ...discovered, capabilities: {} } } : initialized;
      if (outcome !== undefined) backend.says({ jsonrpc: '2.0', id, ...outcome });
    }),
  );
  const found = examineEras({ era: 'auto', startTimeoutMs: 9_000 }, { open, openModern: open, isOverHttp: false });
  return { found, living };
}

describe('a check of a modern server', () => {
  it.each<[string, object | undefined, RegExp]>([
    ['says nothing to initialize', undefined, /cannot connect.*did not answer initialize within 9000 ms.*--era modern/],
    ['answers it with nothing', { result: {} }, /cannot connect.*without a protocolVersion.*--era modern/],
  ])('[R6.05] says what helps legacy clients where it %s', async (_, initialized, warning) => {
    const { found, living } = check(initialized);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(await found).toMatchObject({
      eras: ['modern'],
      revisions: ['2026-07-28'],
      warning: expect.stringMatching(warning),
    });
    expect(living).toEqual([]);
  });

  it.each<[string, object, string[]]>([
    ['refuses initialize', { error: { code: -32601, message: 'x' } }, ['modern']],
    ['serves both eras', { result: { protocolVersion: '2025-11-25' } }, ['modern', 'legacy']],
  ])('[R6.05] has no complaint where it %s', async (_, initialized, eras) => {
    const { found } = check(initialized);
    await vi.advanceTimersByTimeAsync(0);
    const findings = await found;
    expect(findings.eras).toEqual(eras);
    expect(findings.warning).toBeUndefined();
  });
});
