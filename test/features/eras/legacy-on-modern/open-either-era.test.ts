import { describe, expect, it, vi } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import type { Era } from '../../../../src/core/protocol/revisions.ts';
import type { Server } from '../../../../src/core/server/server.ts';
import { openEitherEra } from '../../../../src/features/eras/legacy-on-modern/open-either-era.ts';
import { type EraEvidence, ServerEra } from '../../../../src/features/eras/modern/server-era.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createFakeServer } from '../../../support/fake-backend.ts';
import { waitFor } from '../../../support/wait-for.ts';

const initialize = { jsonrpc: '2.0', id: 'i', method: 'initialize' };
const answered = { jsonrpc: '2.0', id: 'i', result: {} };
const errorOf = (code: number, data?: object) => ({ jsonrpc: '2.0', id: 'i', error: { code, message: 'x', data } });

function createOpener(found: Era | Reason = 'modern', isOverHttp = false, silentMs = 2 ** 30, isRemote = true) {
  const direct = createFakeServer();
  const translated = createFakeServer();
  let asked = 0;
  const seen: (EraEvidence | undefined)[] = [];
  let tellEra: (() => void) | undefined;
  const findEra = (_: unknown, of?: EraEvidence) => {
    asked += 1;
    seen.push(of);
    return new Promise<Era | Reason>((resolve) => {
      tellEra = () => resolve(found);
    });
  };
  const servers = { direct: direct.open, translated: translated.open };
  const server = { name: 's', isRemote } as Server;
  const emit = vi.fn();
  const known = new ServerEra({ server, era: 'auto', openForProbe: direct.open, version: '1', emit });
  const era = Object.assign(known, { find: findEra });
  const open = openEitherEra({ ...servers, era, isOverHttp, silentMs });
  return {
    ...{ direct, translated, seen, emit, asked: () => asked },
    async find() {
      tellEra?.();
      await Promise.resolve();
      await Promise.resolve();
    },
    open(options = {}) {
      const told: unknown[] = [];
      const backend = open(
        {
          onMessages: (messages) => told.push(...messages.map(({ text }) => JSON.parse(text.toString()))),
          onNoise: (text) => told.push(text.toString()),
          onUnanswered: (ids, reason) => told.push({ ids, reason }),
          onEnd: ({ reason }: BackendEnd) => told.push(reason),
        },
        options,
      );
      backend.send(asMessage(initialize), { a: 'b' });
      return { backend, told };
    },
  };
}

describe('a server of unknown era', () => {
  it('that answers initialize serves legacy clients directly, and is not probed', () => {
    const { direct, translated, open, asked, emit } = createOpener();
    const { told, backend } = open();
    expect(emit).not.toHaveBeenCalled();
    direct.backend.says({ jsonrpc: '2.0', method: 'notifications/message' }, answered, errorOf(1));
    expect(emit).toHaveBeenCalledOnce();
    direct.backend.says(errorOf(-32601));
    direct.backend.ends();
    expect(told).toHaveLength(5);
    expect(backend.pid).toBe(direct.backend.pid);
    expect([asked(), translated.opened.length]).toEqual([0, 0]);
  });

  it('is not asked again by the sessions of a local server that has opened one, and by all of a remote one', () => {
    const isAsked = (isRemote: boolean): boolean => {
      const { direct, open, emit } = createOpener('modern', false, 2 ** 30, isRemote);
      open();
      direct.backend.says(answered);
      const { told } = open();
      direct.backend.says(errorOf(-32601));
      expect(emit).toHaveBeenCalledOnce();
      return told.length === 0; // the answer waits for the era
    };
    expect([isAsked(false), isAsked(true)]).toEqual([false, true]);
  });

  it.each([
    ['an error', (server: ReturnType<typeof createFakeServer>) => server.backend.says(errorOf(-32602))],
    ['no answer', (server: ReturnType<typeof createFakeServer>) => server.backend.leaves(['i'], 'server_refused')],
    ['its end', (server: ReturnType<typeof createFakeServer>) => server.backend.ends()],
  ])('[R9.11b] that meets initialize with %s and is modern is translated', async (_, refuse) => {
    const { direct, translated, open, find, seen, emit } = createOpener();
    const { told, backend } = open();
    refuse(direct);
    expect(seen).toEqual([direct.living.length === 0 ? 'end' : undefined]);
    backend.pause();
    direct.backend.ends();
    await find();
    expect(told).toEqual([]);
    expect(direct.living).toEqual([]);
    expect(translated.backend.sent.items).toEqual([initialize]);
    expect(translated.backend.headers).toEqual([{ a: 'b' }]);
    expect(translated.backend.isPaused).toBe(true);
    backend.resume();
    translated.backend.says(answered);
    await backend.close();
    expect(told).toEqual([answered, 'closed']);
    expect(emit).not.toHaveBeenCalled();
    expect(translated.living).toEqual([]);
  });

  it('[R9.11b] that refuses initialize over HTTP by a status and is modern is translated', async () => {
    const { direct, translated, open, find } = createOpener('modern', true);
    open();
    direct.backend.ends({ reason: 'failed' });
    await find();
    expect(translated.backend.sent.items).toEqual([initialize]);
  });

  it.each(['legacy', 'server_start_failed'] as const)(
    'that refuses initialize has its refusal passed on if the probe says %s',
    async (era) => {
      const { direct, translated, open, find } = createOpener(era);
      const { told } = open();
      direct.backend.says(errorOf(-32602));
      direct.backend.ends();
      await find();
      expect(told).toEqual([errorOf(-32602), 'exited']);
      expect(translated.opened).toEqual([]);
    },
  );

  it('[C-03] is not read while it is probed, and is then read as its session wants it', async () => {
    for (const isPaused of [false, true]) {
      const { direct, open, find } = createOpener('legacy');
      const { told, backend } = open();
      direct.backend.says(errorOf(-32602));
      expect(direct.backend.isPaused).toBe(true);
      backend.pause();
      backend.resume();
      expect(direct.backend.isPaused).toBe(true);
      if (isPaused) backend.pause();
      await find();
      expect([direct.backend.isPaused, told.length]).toEqual([isPaused, 1]);
    }
  });

  const modernOnly = errorOf(-32022, { supported: ['2026-07-28'] });
  it.each<[string, object, Era | Reason, unknown]>([
    ['-32022, and is not well', modernOnly, 'server_start_failed', 'failed'],
    ['-32601, and is not well', errorOf(-32601), 'server_start_failed', 'failed'],
    ['-32022 with modern revisions, and is refused as legacy', modernOnly, 'legacy', 'failed'],
    ['-32601, and is legacy', errorOf(-32601), 'legacy', errorOf(-32601)],
  ])(
    '[R9.11b] that refuses initialize with %s gets its client the outcome that helps',
    async (_, refusal, era, outcome) => {
      const { direct, translated, open, find, seen } = createOpener(era);
      const { told, backend } = open();
      direct.backend.says(refusal);
      await find();
      expect(told).toEqual([outcome]);
      expect(seen).toEqual(['modern']);
      await backend.close();
      expect([direct.living, translated.opened]).toEqual([[], []]);
    },
  );

  it('has its refusal passed on if the session ends during the probe', async () => {
    const { direct, translated, open, find } = createOpener();
    const { told, backend } = open();
    direct.backend.says(errorOf(-32602));
    await backend.close();
    await find();
    expect(told).toEqual([errorOf(-32602), 'closed']);
    expect(translated.opened).toEqual([]);
  });

  it('is not probed if it cannot be started', () => {
    const { direct, open, asked } = createOpener();
    const { told } = open();
    direct.backend.ends({ reason: 'failed' });
    expect([told, asked()]).toEqual([['failed'], 0]);
  });

  it.each([
    ['no such method', errorOf(-32601), true],
    ['no revision of the legacy era', errorOf(-32022, { supported: ['2026-07-28'] }), true],
    ['another revision of the legacy era', errorOf(-32022, { supported: ['2026-07-28', '2025-11-25'] }), false],
    ['wrong parameters', errorOf(-32602), false],
  ])(
    'that refuses initialize: the refusal “%s” is remembered for the next session only if it rules out a legacy era',
    async (_, refusal, isRemembered) => {
      const { direct, open, find, translated } = createOpener();
      open();
      direct.backend.says(refusal);
      await find();
      open();
      expect(direct.opened).toHaveLength(isRemembered ? 1 : 2);
      if (!isRemembered) return;
      translated.backend.ends({ reason: 'failed' });
      open();
      expect(direct.opened).toHaveLength(2);
    },
  );

  describe('that leaves initialize unanswered', () => {
    const silent = (era: Era | Reason = 'modern') => createOpener(era, false, 0);

    it('[R9.11b] is probed, and translated if it is modern', async () => {
      const { direct, translated, open, find, asked } = silent();
      const { told, backend } = open();
      direct.backend.says({ jsonrpc: '2.0', method: 'notifications/message' });
      await waitFor(() => asked() === 1, { what: 'the question for its era' });
      await find();
      expect(translated.backend.sent.items).toEqual([initialize]);
      expect(direct.living).toEqual([]);
      direct.opened[0]?.says(answered);
      translated.backend.says(answered);
      expect(told).toEqual([{ jsonrpc: '2.0', method: 'notifications/message' }, answered]);
      await backend.close();
    });

    it.each(['legacy', 'server_start_timeout'] as const)('is waited for if the probe says %s', async (era) => {
      const { direct, translated, open, find, asked } = silent(era);
      const { told } = open();
      await waitFor(() => asked() === 1, { what: 'the question for its era' });
      await find();
      expect(translated.opened).toEqual([]);
      direct.backend.says(answered);
      expect(told).toEqual([answered]);
    });

    it.each([
      ['answers', (server: ReturnType<typeof createFakeServer>) => server.backend.says(answered)],
      ['ends', (server: ReturnType<typeof createFakeServer>) => server.backend.ends({ reason: 'line_too_long' })],
    ])('and %s while it is probed is not translated', async (_, act) => {
      const { direct, translated, open, find, asked } = silent();
      open();
      await waitFor(() => asked() === 1, { what: 'the question for its era' });
      act(direct);
      await find();
      expect(translated.opened).toEqual([]);
    });

    it('twice in a row is translated without waiting, until a translator ends', async () => {
      const { direct, translated, open, find, asked } = silent();
      const keepSilent = async (count: number): Promise<void> => {
        open();
        await waitFor(() => asked() === count, { what: 'the question for its era' });
        await find();
      };
      await keepSilent(1);
      open();
      direct.backend.says(answered);
      await keepSilent(2);
      await keepSilent(3);
      expect([direct.opened.length, translated.opened.length]).toEqual([4, 3]);
      open();
      expect([direct.opened.length, translated.opened.length]).toEqual([4, 4]);
      translated.backend.ends({ reason: 'failed' });
      open();
      expect(direct.opened).toHaveLength(5);
    });
  });

  it('is not translated where it resumes a session of its own', () => {
    const { direct, open } = createOpener();
    const resume = { state: 'x', pending: [], taken: [] };
    const { told } = open({ resume });
    expect(direct.backend.openedWith).toMatchObject({ resume });
    direct.backend.says(errorOf(-32601));
    expect(told).toHaveLength(1);
  });
});
