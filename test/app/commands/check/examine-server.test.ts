import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { examineEras } from '../../../../src/app/commands/check/examine-server.ts';
import { features } from '../../../../src/features.ts';
import { discovered } from '../../../features/eras/modern/shared-fixture.ts';
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
  const found = examineEras({ era: 'auto', timeouts }, { open, openModern: open, isOverHttp: false }, features);
  return { found, living };
}

const timeouts = { startMs: 9_000 };

describe('a check of a modern server', () => {
  it.each<[string, object | undefined, RegExp]>([
    ['says nothing to initialize', undefined, /cannot connect.*did not answer initialize within 9000 ms.*--era modern/],
    ['answers it with nothing', { result: {} }, /cannot connect.*without a protocolVersion.*--era modern/],
  ])('[R6.05] says what helps legacy clients where it %s', async (_, initialized, warning) => {
    const { found, living } = check(initialized);
    // Before, the server is asked for tools, because it declares nothing.
    await vi.advanceTimersByTimeAsync(3_000 + 9_000);
    expect(await found).toMatchObject({
      eras: ['modern'],
      revisions: ['2026-07-28'],
      warnings: [expect.stringMatching(warning)],
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
    expect(findings.warnings).toEqual([]);
  });
});

/** Examines a legacy server that answers `tools/list` with this. */
async function listedBy(capabilities: object, answer: (cursor: unknown) => object | undefined) {
  const { open } = createFakeServer(({ id, method, params }, backend) =>
    queueMicrotask(() => {
      const cursor = (params as { cursor?: unknown } | undefined)?.cursor;
      const outcome =
        method === 'initialize' ? { result: { protocolVersion: '2025-11-25', capabilities } } : answer(cursor);
      if (id !== undefined && outcome !== undefined) backend.says({ jsonrpc: '2.0', id, ...outcome });
    }),
  );
  const found = examineEras({ era: 'legacy', timeouts }, { open, openModern: undefined, isOverHttp: false }, features);
  await vi.advanceTimersByTimeAsync(3_000);
  return found;
}

describe('lists that careless servers give', () => {
  const go = { name: 'go' };
  it.each<[string, (cursor: unknown) => object, string[], RegExp]>([
    ['the same cursor', () => ({ result: { tools: [go], nextCursor: '8' } }), ['go', 'go'], /nextCursor.*gave before/],
    ['an empty cursor', () => ({ result: { tools: [go], nextCursor: '' } }), ['go'], /empty nextCursor/],
    [
      'two cursors in a circle',
      (cursor) => ({ result: { tools: [go], nextCursor: cursor === 'x' ? 'y' : 'x' } }),
      ['go', 'go', 'go'],
      /nextCursor.*gave before/,
    ],
  ])('%s ends the list with a warning', async (_, answer, tools, warning) => {
    const { lists, warnings } = await listedBy({ tools: {} }, answer);
    expect(lists.tools).toEqual(tools);
    expect(warnings).toEqual([expect.stringMatching(warning)]);
  });

  it.each([
    ['an error', { error: { code: -32601, message: 'Method not found' } }],
    ['an empty result', { result: {} }],
    ['null', { result: { tools: null } }],
  ])('%s is an empty list', async (_, outcome) => {
    expect(await listedBy({ tools: {} }, () => outcome)).toMatchObject({ lists: { tools: [] }, warnings: [] });
  });

  it('finds the tools of a server that declares nothing, and says so', async () => {
    const { lists, warnings } = await listedBy({}, () => ({ result: { tools: [go] } }));
    expect(lists).toEqual({ tools: ['go'] });
    expect(warnings).toEqual([expect.stringContaining('does not declare')]);
  });

  it('does not wait long for the tools of a server that declares nothing', async () => {
    expect(await listedBy({}, () => undefined)).toMatchObject({ lists: {}, warnings: [] });
  });
});

describe('a check', () => {
  it('recognises a command that sends back what it is told, at once', async () => {
    const { open, living } = createFakeServer((message, backend) => queueMicrotask(() => backend.says(message)));
    const found = examineEras({ era: 'auto', timeouts }, { open, openModern: open, isOverHttp: false }, features);
    const failed = expect(found).rejects.toMatchObject({
      message: expect.stringContaining('own request'),
      help: expect.stringMatching(/terminal.*-t/),
    });
    await vi.advanceTimersByTimeAsync(0);
    await failed;
    expect(living).toEqual([]);
  });

  it.each(['legacy', 'auto'] as const)(
    'answers a ping that comes before the answer to initialize (era %s)',
    async (era) => {
      let opening: unknown;
      const initialized = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
      const { open } = createFakeServer(({ id, method }, backend) =>
        queueMicrotask(() => {
          if (method === 'initialize') {
            opening = id;
            backend.says({ jsonrpc: '2.0', id: 'early', method: 'ping' });
          } else if (id === 'early') backend.says({ jsonrpc: '2.0', id: opening, result: initialized });
          else if (method === 'tools/list') backend.says({ jsonrpc: '2.0', id, result: { tools: [] } });
        }),
      );
      const openers = { open, openModern: era === 'auto' ? open : undefined, isOverHttp: false };
      const found = examineEras({ era, timeouts }, openers, features);
      await vi.advanceTimersByTimeAsync(8_000);
      expect((await found).eras).toEqual(['legacy']);
    },
  );
});
