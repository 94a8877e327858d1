import type { Budget } from './budget.ts';
import { type Exploration, explore } from './explore.ts';
import type { Guard, Rules } from './rules.ts';
import { everywhere, initialState } from './state.ts';

/**
 * Decision 0015, explored exhaustively within bounds: two processes with up to four names each, one session, one request,
 * and as many faults as each configuration names, in every order and at every moment.
 *
 * Checked in every state: [P6] at most one instance may speak, none of whose session another has taken over; the log
 * takes events only from the holder of the newest epoch; no epoch has two. [P5] what a client gets is or was in the log,
 * no id has two contents. [P4] in order, once, without a gap that is not told. [P3] one answer at most, and what is not
 * harmless is handed over once. [P7] no 404 for a session that some owner still has; a deleted one stays deleted. And from
 * every state a way without further faults leads to an answer (or, where nobody asks, to an owner that may speak); a
 * `crash` in the budget makes this hold without the other instance, too.
 *
 * A frozen process is one that takes no step: nothing makes any of them take one. Its reading of its own clock and what
 * it does by it are one step. A reply that waits in its socket is handled whenever it wakes.
 *
 * Each request between the instances has a connection of its own. It breaks for its ingress at any moment (`linkBreak`); the
 * request may arrive all the same, later, beside a new one. A receiver that takes no step is a half-open connection or a
 * frozen process.
 *
 * Left out: a second request; idle limits, drains and releases; the limits of logs and takeovers; who runs a
 * pending request again; a client that gives up; two masters at once (a split brain that takes writes on both sides);
 * a Redis clock that jumps; shards of a cluster that fail one by one; what is delayed beyond one command. `all at once`
 * (`isPrompt`) means that a command reaches Redis in the step that sends it, and only its reply takes time. A request ends
 * for the ingress with its first answer, as an HTTP response does. After a loss of data the tombstone is gone, too: whoever
 * still has the session brings it back.
 */
export interface Configuration {
  readonly name: string;
  readonly request: Rules['request'];
  /** Where the client is: 0 at the owner, 1 at the other instance. */
  readonly at?: number;
  readonly events?: number;
  readonly isHarmless?: boolean;
  readonly isPrompt?: boolean;
  /** A failover goes back to the first state; without it to any that `replicate` chose. */
  readonly hasReplica?: boolean;
  readonly faults: Partial<Budget>;
  /** The faults of the shorter run, where all of them take seconds. ownership-full.test.ts has all. */
  readonly fewer?: Partial<Budget>;
}

/** Explores a configuration. */
export function run(configuration: Configuration, without: readonly Guard[] = []): Exploration {
  const { request, events = 2, isHarmless = false, isPrompt = false, hasReplica = false, faults } = configuration;
  const state = initialState(configuration.at ?? everywhere, faults, hasReplica);
  return explore(state, { request, events, isHarmless, isPrompt, without: new Set(without) });
}

export const failover = { failover: 1 };
export const elsewhere = { at: 1, isPrompt: true };
export const configurations: readonly Configuration[] = [
  {
    name: '[P6] lapses and a crash',
    request: 'any',
    faults: { lapse: 3, crash: 1 },
    fewer: { lapse: 2, crash: 1 },
  },
  {
    name: '[P6] lost and late commands',
    request: 'any',
    faults: { lapse: 2, lose: 1, delay: 1 },
    fewer: { lapse: 1, lose: 1, delay: 1 },
  },
  { name: '[P6] a failover', request: 'any', isPrompt: true, hasReplica: true, faults: { ...failover, lapse: 1 } },
  { name: '[P6] a failover, commands under way', request: 'any', hasReplica: true, faults: failover },
  {
    name: '[P6] [P7] a restart without data',
    request: 'any',
    isPrompt: true,
    faults: { restartEmpty: 1, lapse: 2 },
    fewer: { restartEmpty: 1, lapse: 1 },
  },
  {
    name: '[P6] [P7] FLUSHALL',
    request: 'any',
    isPrompt: true,
    faults: { flush: 1, lapse: 2 },
    fewer: { flush: 1, lapse: 1 },
  },
  {
    name: '[P7] a deletion',
    request: 'any',
    faults: { remove: 1, lapse: 1, cut: 1, delay: 1 },
    fewer: { remove: 1, lapse: 1, cut: 1 },
  },
  {
    name: '[P7] a deletion that a failover loses',
    request: 'any',
    isPrompt: true,
    hasReplica: true,
    faults: { ...failover, remove: 1, cut: 1 },
  },
  { name: '[P3] a call at its owner', request: 'call', at: 0, faults: { lapse: 2, crash: 1 } },
  { name: '[P3] a call elsewhere', request: 'call', at: 1, faults: { lapse: 2, crash: 1 } },
  {
    name: '[P3] broken connections and commands under way',
    request: 'call',
    at: 1,
    faults: { linkBreak: 1, lapse: 1, crash: 1, cut: 1 },
    fewer: { linkBreak: 1, lapse: 1 },
  },
  { name: '[P3] lost and late commands', request: 'call', at: 1, faults: { lose: 1, delay: 1, lapse: 1 } },
  {
    name: '[P3] a harmless call',
    request: 'call',
    at: 1,
    isHarmless: true,
    faults: { lapse: 1, crash: 1, cut: 1 },
    fewer: { lapse: 1, crash: 1 },
  },
  { name: '[P3] [P7] a call and a restart without data', request: 'call', at: 1, faults: { restartEmpty: 1 } },
  { name: '[P3] [P7] a call and FLUSHALL', request: 'call', at: 1, isPrompt: true, faults: { flush: 1, lapse: 1 } },
  { name: '[P3] a call and a failover', request: 'call', at: 1, isPrompt: true, hasReplica: true, faults: failover },
  {
    name: '[P4] [P5] a stream elsewhere',
    request: 'stream',
    at: 1,
    faults: { lapse: 1, crash: 1, lose: 1 },
    fewer: { lapse: 1, lose: 1 },
  },
  { name: '[P4] a resume', request: 'stream', at: 0, faults: { lapse: 1, crash: 1, drop: 1 } },
  { name: '[P4] three events', request: 'stream', at: 1, events: 3, faults: { linkBreak: 1, cut: 1 } },
  { name: '[P4] a stream and FLUSHALL', request: 'stream', at: 1, isPrompt: true, faults: { flush: 1 } },
  {
    name: '[P4] [P5] a stream, a failover, a crash and a resume',
    request: 'stream',
    at: 0,
    isPrompt: true,
    faults: { ...failover, replicate: 1, crash: 1 },
    fewer: { ...failover, crash: 1 },
  },
  {
    name: '[P3] a call and a broken connection',
    ...elsewhere,
    request: 'call',
    faults: { linkBreak: 1, lapse: 1, crash: 1 },
  },
  {
    name: '[P3] a call whose connections break twice',
    ...elsewhere,
    request: 'call',
    faults: { linkBreak: 2, lapse: 1 },
  },
  {
    name: '[P3] a harmless call and a broken connection',
    ...elsewhere,
    request: 'call',
    isHarmless: true,
    faults: { linkBreak: 1, lapse: 1 },
  },
  {
    name: '[P3] [P7] a call, a broken connection and FLUSHALL',
    ...elsewhere,
    request: 'call',
    faults: { linkBreak: 1, flush: 1 },
  },
  {
    name: '[P4] [P5] a stream and a broken connection',
    ...elsewhere,
    request: 'stream',
    faults: { linkBreak: 1, lapse: 1 },
    fewer: { linkBreak: 1 },
  },
  { name: '[P4] a stream whose connections break twice', ...elsewhere, request: 'stream', faults: { linkBreak: 2 } },
];

/** Tells of the size of an exploration. */
export const say = (line: string): boolean => process.stdout.write(`${line}\n`);
