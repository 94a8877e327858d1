import type { Logger } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startProbing } from '../../../src/app/servers/health-probe.ts';
import type { ServedServer } from '../../../src/app/servers/served-server.ts';
import { serverFailure } from '../../../src/core/ops/health/server-failure.ts';
import { ServerHealth } from '../../../src/core/ops/health/server-health.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A legacy server that answers its probes as long as `state.isWell`. */
function probed(options: object = {}) {
  const state = { isWell: true, ends: false, era: Promise.resolve('legacy') };
  const { open, living } = createFakeServer(({ id, method }, backend) =>
    queueMicrotask(() => {
      if (state.ends) backend.ends();
      if (id === undefined || !state.isWell) return;
      const result = method === 'initialize' ? { protocolVersion: '2025-11-25', capabilities: {} } : {};
      backend.says({ jsonrpc: '2.0', id, result });
    }),
  );
  const health = new ServerHealth();
  health.add('it', { transport: 'stdio', isRequired: false, era: () => 'legacy' });
  const times = { probes: { everyMs: 1_000 }, timeouts: { startMs: 100 } };
  const config = { name: 'it', credentials: {}, forwardHeaders: [], ...times, ...options };
  const eras = { findEra: () => state.era };
  const served = { config, eras, running: { openSibling: open } } as unknown as ServedServer;
  const told: unknown[] = [];
  const note = (level: string) => (fields: object, msg: string) => void told.push({ level, msg, ...fields });
  const logger = { info: note('info'), warn: note('warn') } as unknown as Logger;
  const probe = startProbing(served, health, logger);
  const now = () => health.statuses[0];
  /** So many probes later, each of which takes its time-out. */
  const probes = (count: number) => vi.advanceTimersByTimeAsync(count * 1_100);
  return { state, health, living, probe, now, probes, told };
}

describe('a probe', () => {
  it('counts a server as up with its first answer, down after some without, up again after some with', async () => {
    const { state, living, now, probes } = probed();
    await vi.advanceTimersByTimeAsync(0);
    expect(now()).toMatchObject({ probe: 'up', last: { state: 'started' } });
    expect(living).toEqual([]);
    state.isWell = false;
    await probes(2);
    expect(now()).toMatchObject({ probe: 'up', last: { state: 'failed', reason: 'no_answer' } });
    await probes(1);
    expect(now()).toMatchObject({ probe: 'down' });
    state.isWell = true;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(now()).toMatchObject({ probe: 'down', last: { state: 'started' } });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(now()).toMatchObject({ probe: 'up' });
    expect(living).toEqual([]);
  });

  it('does not take a lost answer now and then for a server that is down', async () => {
    const { state, now, probes } = probed();
    await vi.advanceTimersByTimeAsync(0);
    for (let round = 0; round < 5; round++) {
      state.isWell = false;
      await probes(2);
      state.isWell = true;
      await vi.advanceTimersByTimeAsync(1_000);
      expect(now()).toMatchObject({ probe: 'up' });
    }
  });

  it('tells what is known of why a server is not well', async () => {
    const { state, health, now, probes } = probed();
    Object.assign(state, { isWell: false, ends: true });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(now()).toMatchObject({ last: { reason: 'exited' } });
    // Who tried to start it has told that.
    state.era = Promise.resolve('server_start_failed');
    health.failed('it', serverFailure('not_found'));
    await probes(2);
    expect(now()).toMatchObject({ probe: 'down', last: { reason: 'not_found' } });
  });

  it('is told when the server comes up or goes down, and for which reason, once each', async () => {
    const { state, health, probes, told } = probed();
    await vi.advanceTimersByTimeAsync(5_000);
    state.isWell = false;
    await probes(8);
    state.era = Promise.resolve('server_start_failed');
    health.failed('it', serverFailure('not_found'));
    await probes(4);
    Object.assign(state, { isWell: true, era: Promise.resolve('legacy') });
    await vi.advanceTimersByTimeAsync(5_000);
    const of = { server: 'it' };
    const down = { ...of, level: 'warn', msg: 'server is down according to its probes', help: expect.any(String) };
    const up = { ...of, level: 'info', msg: 'server is up according to its probes' };
    const detail = 'The command of the server was not found.';
    expect(told).toEqual([
      up,
      { ...down, reason: 'no_answer', detail: expect.any(String) },
      { ...down, reason: 'not_found', detail },
      up,
    ]);
  });

  it('does not wait longer for a server that hangs at its start', async () => {
    const { state, now } = probed({ probes: { everyMs: 60_000 } });
    await vi.advanceTimersByTimeAsync(0);
    state.era = new Promise<string>(() => undefined);
    await vi.advanceTimersByTimeAsync(60_099);
    expect(now()).toMatchObject({ last: { state: 'started' } });
    await vi.advanceTimersByTimeAsync(1);
    expect(now()).toMatchObject({ last: { state: 'failed', reason: 'no_answer' } });
  });

  it('stops when it is told so', async () => {
    const { state, probe, now, probes } = probed();
    await vi.advanceTimersByTimeAsync(0);
    probe?.stop();
    state.isWell = false;
    await probes(10);
    expect(now()).toMatchObject({ probe: 'up', last: { state: 'started' } });
  });

  it.each<[string, object]>([
    ['where it is not wanted', { probes: { everyMs: 0 } }],
    ['of a server that needs credentials of its clients', { credentials: { TOKEN: '{header:x-token}' } }],
    ['of a server that gets headers of its clients', { forwardHeaders: ['x-tenant'] }],
  ])('is not made %s', (_, options) => {
    expect(probed(options).probe).toBeUndefined();
  });
});
