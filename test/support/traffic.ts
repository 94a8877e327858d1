import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../resume/random.ts';
import { outcomesOf } from './call-faults.ts';
import { root } from './gateway.ts';
import { initialize, type Session } from './http-client.ts';
import { listen } from './resuming-client.ts';
import {
  isResponseMessage,
  markOf,
  messageOf,
  type RecordedCall,
  type RecordedConnection,
  type SessionTranscript,
} from './transcript.ts';
import { withDeadline } from './wait-for.ts';

/** The kinds of calls; see `traffic-server.mjs`. */
export type CallKind = 'count' | 'wait' | 'quick' | 'tell' | 'list' | 'hold';

/** So long a client whose calls have ended waits for older messages of its GET stream. */
const catchUpMs = 10_000;

export interface TrafficOptions {
  /** The source of randomness, so that a run can be repeated as far as the machine allows. */
  readonly random: Random;
  readonly sessions?: number;
  /** The number of concurrent calls per session. */
  readonly callsAtOnce?: number;
  /** The number of calls per session; by default, calls continue until `stop`. */
  readonly callsPerSession?: number;
  /** The relative frequency of each kind of call; by default, all but `hold` are equally frequent. */
  readonly mix?: Readonly<Partial<Record<CallKind, number>>>;
  /** The probability that a client drops a connection after some events. */
  readonly dropChance?: number;
  /** Each session listens on its GET stream too. */
  readonly isListening?: boolean;
  /** A call without an answer ends after this time. The checker then finds the missing parts. */
  readonly callDeadlineMs?: number;
  readonly version?: string;
  /** The prefix of session names, for several kinds of traffic with the same notes: `s`. */
  readonly prefix?: string;
  /** The average pause between two calls of a client; 0 by default. */
  readonly pauseMs?: number;
}

/** Clients at work. */
export interface Traffic {
  /** The records so far, including open connections. Complete when `done` or `stop` has resolved. */
  readonly transcripts: readonly SessionTranscript[];
  /** Resolves when all calls have ended, where `callsPerSession` says how many there are. */
  readonly done: Promise<void>;
  /** Starts no new calls. Resolves with the transcripts when the open calls have ended. */
  stop(): Promise<readonly SessionTranscript[]>;
  /** Ends the sessions by DELETE, after `stop`. */
  endSessions(): Promise<void>;
}

/** The command of the server that the traffic needs. `notes` is a file for `executionsIn`; `tickMs` is for `lostTicks`. */
export const trafficServer = (notes?: string, tickMs?: number): readonly string[] => [
  process.execPath,
  `${root}test/support/traffic-server.mjs`,
  ...(notes === undefined ? [] : [notes]),
  ...(tickMs === undefined ? [] : [`${tickMs}`]),
];

/** The marks of the calls that servers began to run, as `Evidence` wants them. */
export async function executionsIn(notes: string): Promise<readonly string[]> {
  return (await readFile(notes, 'utf8')).split('\n').filter((line) => line !== '');
}

/** The number of calls by outcome: `answered`, `broken`, `none`, or the reason of an error. */
export function countOutcomes(transcripts: readonly SessionTranscript[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcome of transcripts.flatMap((transcript) => [...outcomesOf(transcript).values()])) {
    const name = outcome.outcome === 'error' ? outcome.reason : outcome.outcome;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** Opens sessions at `url`, and lets their clients call, listen, drop connections and resume. */
export async function startTraffic(url: string, options: TrafficOptions): Promise<Traffic> {
  const { random, sessions: count = 4, version = '2025-11-25', prefix = 's' } = options;
  const sessions = await Promise.all(Array.from({ length: count }, () => initialize(url, { version })));
  const clients = sessions.map((session, n) =>
    startClient(url, `${prefix}${n}`, session, { ...options, random: random.fork() }),
  );
  const transcripts = clients.map(({ transcript }) => transcript);
  const done = Promise.all(clients.map((client) => client.done)).then(() => undefined);
  return {
    transcripts,
    done,
    async stop() {
      for (const client of clients) client.stop();
      await done;
      return transcripts;
    },
    endSessions: async () => void (await Promise.all(clients.map((client) => client.endSession()))),
  };
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

type Recording = Writable<SessionTranscript> & {
  readonly calls: RecordedCall[];
  readonly connections: RecordedConnection[];
};

function startClient(url: string, name: string, session: Session, options: TrafficOptions) {
  const { random, callsAtOnce = 3, callsPerSession = Number.POSITIVE_INFINITY, isListening = true } = options;
  const { dropChance = 0.3, callDeadlineMs = 60_000, pauseMs = 0 } = options;
  const transcript: Recording = { name, sessionId: session.id, calls: [], connections: [], isEnded: false };
  const stopped = new AbortController();
  const headers = { 'Mcp-Session-Id': session.id, 'MCP-Protocol-Version': session.version };

  /** One connection, from its beginning to its end or to where the client drops it; recorded. */
  const connectOnce = async (
    call: RecordedCall | undefined,
    {
      body,
      after,
      deadlineMs,
      until,
    }: { body?: object; after?: string | undefined; deadlineMs: number; until?: AbortSignal },
  ): Promise<RecordedConnection> => {
    // Seldom at its head, often behind its priming event, else amid its events.
    const most = random.chance(0.5) ? 2 : 12;
    let eventsLeft = random.chance(dropChance) ? random.integer(random.chance(0.1) ? 0 : 1, most) : undefined;
    const listening = listen(url, {
      headers,
      ...(body !== undefined && { body }),
      after,
      onEvent: () => {
        if (eventsLeft !== undefined && --eventsLeft <= 0) listening.drop();
      },
    });
    const recorded = Object.assign(listening.listened, { call: call?.id });
    transcript.connections.push(recorded);
    if (eventsLeft === 0) listening.opened.then(() => listening.drop());
    const drop = (): void => listening.drop();
    until?.addEventListener('abort', drop);
    if (until?.aborted) drop();
    await withDeadline(listening.ended, { deadlineMs }).catch(drop);
    until?.removeEventListener('abort', drop);
    await listening.ended;
    return recorded;
  };

  /** Follows one call to its answer. */
  const follow = async (call: RecordedCall, body: object): Promise<void> => {
    const end = performance.now() + callDeadlineMs;
    const isAnswered = ({ events }: RecordedConnection): boolean =>
      events.some((event) => isResponseMessage(messageOf(event) ?? {}));
    let connection = await connectOnce(call, { body, deadlineMs: callDeadlineMs });
    let after = lastIdOf(connection);
    while (after !== undefined && !isAnswered(connection)) {
      const deadlineMs = end - performance.now();
      // 404: the session has ended; 204: the stream is complete. A retry would change nothing.
      if (deadlineMs <= 0 || connection.status === 404 || connection.status === 204) return;
      await delay(connection.status === 200 ? random.integer(0, 20) : 50); // so long the client is away
      connection = await connectOnce(call, { after, deadlineMs });
      after = lastIdOf(connection) ?? after;
    }
  };

  const callOne = async (number: number): Promise<void> => {
    const id = `${name}-c${number}`;
    const mark = markOf(name, id);
    const kind = pick(options.mix ?? { count: 1, wait: 1, quick: 1, tell: 1, list: 1 }, random);
    const startedAt = performance.now();
    const call: Writable<RecordedCall> = {
      ...{ id, mark, isOnce: kind !== 'list', isGivenUp: false },
      ...{ startedAt, endedAt: undefined },
    };
    transcript.calls.push(call);
    await follow(call, { jsonrpc: '2.0', id, ...requestOf(kind, id, mark, random) });
    call.endedAt = performance.now();
  };
  const worker = async (first: number): Promise<void> => {
    for (let n = first; n < callsPerSession && !stopped.signal.aborted; n += callsAtOnce) {
      await callOne(n);
      if (pauseMs > 0)
        await delay(random.integer(0, 2 * pauseMs), undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  };
  const calls = Promise.all(Array.from({ length: callsAtOnce }, (_, first) => worker(first)));
  const finished = new AbortController();
  const listenOn = async (): Promise<void> => {
    let after: string | undefined;
    while (isListening && !finished.signal.aborted) {
      const connection = await connectOnce(undefined, { after, deadlineMs: 600_000, until: finished.signal });
      after = lastIdOf(connection) ?? after;
      if (connection.status === 404) return;
      if (!finished.signal.aborted) await delay(connection.status === 200 ? random.integer(0, 20) : 50);
    }
  };
  // A client that leaves with its last answer may leave before an older message of its GET stream, on another connection.
  const leave = async (): Promise<void> => {
    const until = performance.now() + catchUpMs;
    while (performance.now() < until && !hasCaughtUp(transcript.connections)) await delay(50);
    finished.abort();
  };
  const listening = listenOn();
  const done = Promise.all([calls.finally(() => Promise.race([leave(), listening])), listening]).then(() => undefined);
  return {
    transcript,
    done,
    stop: () => stopped.abort(),
    async endSession(): Promise<void> {
      transcript.isEnded = true;
      await session.delete();
    },
  };
}

/** The numbers of processes on some connections, in order. */
const ticksOf = (connections: readonly RecordedConnection[]): readonly { pid: number; n: number }[] =>
  connections
    .flatMap(({ events }) => events)
    .filter(({ data }) => data?.includes('notifications/ticked'))
    .flatMap((event) => messageOf(event)?.params ?? []);

/** True once the GET stream has a number after the last one on the stream of a call, or one of a newer process. */
function hasCaughtUp(connections: readonly RecordedConnection[]): boolean {
  const onCalls = ticksOf(connections.filter(({ call }) => call !== undefined));
  const last = onCalls.at(-1);
  const newest = ticksOf(connections.filter(({ call }) => call === undefined)).at(-1);
  if (last === undefined) return true;
  if (newest === undefined) return false;
  return newest.pid === last.pid ? newest.n > last.n : !onCalls.some(({ pid }) => pid === newest.pid);
}

const lastIdOf = ({ events }: RecordedConnection): string | undefined =>
  events.findLast(({ id }) => id !== undefined)?.id;

function pick(mix: Readonly<Partial<Record<CallKind, number>>>, random: Random): CallKind {
  const weights = Object.entries(mix) as [CallKind, number][];
  let at = random.next() * weights.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [kind, weight] of weights) {
    at -= weight;
    if (at < 0) return kind;
  }
  throw new Error('The mix of calls is empty');
}

function requestOf(kind: CallKind, id: string, mark: string, random: Random): object {
  const _meta = { progressToken: id, mark };
  if (kind === 'list') return { method: 'tools/list', params: { _meta } };
  const args = {
    quick: () => ({}),
    wait: () => ({ ms: random.integer(0, 400) }),
    count: () => ({ count: random.integer(1, 60), gapMs: random.chance(0.3) ? 0 : random.integer(1, 15) }),
    tell: () => ({ count: random.integer(1, 10) }),
    hold: () => ({}),
  }[kind]();
  return { method: 'tools/call', params: { name: kind, arguments: { ...args, mark }, _meta } };
}
