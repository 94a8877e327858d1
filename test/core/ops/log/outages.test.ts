import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { GatewayEvent } from '../../../../src/core/ops/gateway-events.ts';
import { createServerLog } from '../../../../src/core/ops/log/server-log.ts';
import { SessionByProcess } from '../../../../src/core/ops/log/session-by-process.ts';
import { createSessionLifecycleLog } from '../../../../src/core/ops/log/session-lifecycle-log.ts';
import { RepeatedHelp } from '../../../../src/core/ops/repeated-help.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** The logs of servers and sessions, and their lines at `info`. */
function createLogs() {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  const parts = { server: logger, stderr: logger, session: logger, store: logger };
  const [processes, helps] = [new SessionByProcess(), new RepeatedHelp()];
  const options = { processes, helps, isAtTerminal: false, storeName: 'Redis', explainOutage: () => ({}) };
  const sinks = [createServerLog(parts, processes, helps), createSessionLifecycleLog(parts, options)];
  return {
    lines,
    messages: () => lines.splice(0).map(({ msg, detail }) => (detail === undefined ? msg : `${msg}: ${detail}`)),
    emit: (...events: GatewayEvent[]) => {
      for (const event of events) for (const sink of sinks) sink(event);
    },
  };
}

describe('a server that is missing from a view', () => {
  const of = { server: 'all', member: 'files' };
  const missing: GatewayEvent = { type: 'view-server-missing', ...of, reason: 'down' };
  const silent: GatewayEvent = { type: 'view-server-missing', ...of, reason: 'silent' };
  const ready: GatewayEvent = { type: 'view-server-ready', ...of };
  const end = { reason: 'exited', detail: 'The server exited with code 3.' } as const;
  const down: GatewayEvent = { type: 'view-server-down', ...of, end, isAtStart: true };

  it('is one warning for each outage, and a line when it answers again', () => {
    const { emit, messages } = createLogs();
    emit(missing, missing, silent);
    expect(messages()).toEqual([expect.stringMatching(/^the view answered without .*: files is still starting\./)]);
    emit(ready, ready);
    expect(messages()).toEqual(['a server of the view answers again']);
    emit(silent);
    expect(messages()).toEqual([expect.stringMatching(/: files has not answered in time\./)]);
  });

  it('and has ended is two warnings, however many sessions lack it', () => {
    const { emit, messages } = createLogs();
    emit(down, missing, down, missing);
    expect(messages()).toEqual([
      'a server of the view has ended: The server exited with code 3.',
      'the view answered without one of its servers: files does not run.',
    ]);
  });

  it('is another outage after a minute without one', () => {
    const { emit, messages } = createLogs();
    emit(missing);
    vi.advanceTimersByTime(59_000);
    emit(missing);
    vi.advanceTimersByTime(60_000);
    emit(missing);
    expect(messages()).toHaveLength(2);
  });
});

const name = { server: 's', session: 'abcd' };

it('a lost instance is told once, with the number of sessions that continue here', () => {
  const { emit, messages, lines } = createLogs();
  const adopted: GatewayEvent = { type: 'session-adopted', name, pending: 0, lostInstance: 'gw2' };
  emit(adopted, adopted, { ...adopted, lostInstance: undefined });
  expect(messages()).toEqual([
    'session taken over',
    'session taken over',
    'session continues; its last instance has left it',
  ]);
  vi.advanceTimersByTime(5_000);
  expect(lines).toEqual([
    { level: 40, instance: 'gw2', sessions: 2, msg: 'instance lost; its sessions continue here' },
  ]);
});

it('[P12] the end of a server has its last output if a process without a client wrote the same', () => {
  const { emit, lines } = createLogs();
  const ended = (line: string, isAtStart = true): GatewayEvent => ({
    type: 'backend-ended',
    name,
    isAtStart,
    end: { reason: 'exited', detail: 'x', lastOutput: [line] },
  });
  emit(ended('KeyError'), { type: 'probe-output', server: 's', lastOutput: ['KeyError', 'Traceback'] });
  emit(ended('KeyError'), ended('what a client sent'), ended('KeyError', false));
  expect(lines.map(({ lastOutput }) => lastOutput)).toEqual([undefined, ['KeyError'], undefined, undefined]);
});
