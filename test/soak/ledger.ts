import { maxTakeovers } from '../../src/core/store/takeover-limit.ts';
import weights from './fault-weights.json' with { type: 'json' };
import { loadMs, noticedMs } from './stage.ts';

/** What is done to the cluster while clients are at work. */
export const faultKinds = Object.keys(weights) as readonly (keyof typeof weights)[];
export type FaultKind = keyof typeof weights | typeof busy;

/** No fault of ours: others had the processors of the machine. */
export const busy = 'machine busy';

/** In which other instances may take sessions over: one bears so many without progress. */
export const takeovers: readonly FaultKind[] = ['kill', 'redis full and kill', 'freeze', 'partition', busy];

/** After which an id that was seen need not be in the log. */
const losing: readonly FaultKind[] = ['redis empty', 'redis failover behind'];
/** With a sentinel, these may make it choose the replica, while some gateways still write to the former master. */
const losingWithSentinel: readonly FaultKind[] = ['redis restart', 'redis pause', 'redis failover'];

/** One fault, by `performance.now()`. */
export interface Fault {
  readonly kind: FaultKind;
  readonly what: string;
  readonly beganAt: number;
  /** The process that it froze, whose lateness is no sign of a busy machine. */
  readonly frozen?: number | undefined;
  /** Infinity while it goes on. */
  endedAt: number;
}

/** One thing that a client did, and how it ended. */
export interface Deed {
  readonly kind: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** `answered`, `broken` (by the connection, before an answer), the reason of an error of the gateway, or what was wrong. */
  readonly outcome: string;
  /** How long it takes by itself. */
  readonly ownMs: number;
  /** What the client saw meanwhile, in order, for whoever looks for the cause of a failure. */
  readonly trail?: readonly string[];
  /** The client breaks its own connections, so that `broken` says nothing. */
  readonly isDropping?: boolean;
}

/** Of a call whose way between instances was lost for a moment. */
const lostWay = ['without its first progress'];

/** The store was away: for a request, and for the answers to what a server asked its client. */
const storeAway = ['store_unavailable', 'input_not_taken'];

/** While no instance can use Redis. */
const redisAway = [...lostWay, 'already gone', 'outcome_unknown', ...storeAway];

/** While two instances do not hear each other. */
const linkCut = [...lostWay, 'already gone', 'broken', 'outcome_unknown', 'owner_unreachable'];

/** While an instance hears nobody. */
const cutOff = [...linkCut, 'takeover_paused', ...storeAway];

/**
 * An instance without a lease counts as lost, and so does the stream of an HTTP+SSE client there. Its client learns of that
 * when the stream ends, and its POSTs are refused until then (docs/decisions/0195).
 */
const streamParted = ['unknown_token'];

/** How a deed may end besides `answered` while a fault lasts, and until it should have been noticed. */
const explains: Readonly<Record<FaultKind, readonly string[]>> = {
  kill: ['takeover_paused', 'already gone', 'broken', 'outcome_unknown'],
  drain: ['already gone', 'broken', 'outcome_unknown', 'draining'],
  freeze: [...cutOff, ...streamParted],
  stall: [...storeAway],
  partition: [...cutOff, ...streamParted],
  'redis restart': redisAway,
  'redis empty': redisAway,
  'redis pause': redisAway,
  'redis slow': redisAway,
  'link partition': linkCut,
  'link one way': linkCut,
  // A full Redis takes no takeover, so a session whose owner was lost before stays without one.
  'redis full': [...redisAway, 'owner_unreachable'],
  'redis disk full': redisAway,
  'redis failover': redisAway,
  'redis failover behind': redisAway,
  'redis full and kill': cutOff,
  'scripts flushed': [],
  'child killed': ['outcome_unknown', 'server_exited', 'server_start_failed'],
  'child ended': ['outcome_unknown', 'server_exited', 'server_start_failed'],
  'child stopped': [],
  'upstream cut': ['outcome_unknown', 'server_unreachable', 'server_exited'],
  'upstream disk full': ['outcome_unknown', 'server_unreachable', 'server_exited', ...storeAway],
  'clients cut': ['broken'],
  [busy]: cutOff,
};

/** In milliseconds; undefined where there was none. */
export interface Longest {
  calm: number | undefined;
  fault: number | undefined;
}

/** Something that must not be. */
export interface Failure {
  readonly atMs: number;
  readonly what: string;
}

export interface Ledger {
  readonly faults: readonly Fault[];
  readonly failures: readonly Failure[];
  /** How often each kind of deed came to which outcome. */
  readonly counts: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** What only a busy machine explains: how often, by kind of deed and outcome. It counts as no failure. */
  readonly excused: ReadonlyMap<string, number>;
  /** How long the deed took that took longest, of each kind, without and with a fault near it. */
  readonly longestMs: ReadonlyMap<string, Longest>;
  /** Notes a fault while it lasts. */
  during<T>(kind: FaultKind, what: string, run: () => Promise<T>, frozen?: number): Promise<T>;
  /** Notes that the machine, or one process, stood still for this time, which was measured. */
  noteBusy(what: string, since: number, until?: number): void;
  /** Notes that the sentinel chose another master by itself: the former one was late, on a busy machine or by a fault. */
  noteFailover(since: number): void;
  note(deed: Deed): void;
  fail(what: string): void;
  /** Judges what is old enough that later faults have nothing to do with it; or, at the end, everything. */
  judge(all?: boolean): void;
  /**
   * True if a session may have ended since then: it was taken over too often, or Redis was emptied while its owner was
   * lost.
   */
  mayHaveEnded(from: number): boolean;
  /** True if Redis and an owner were lost at the same time since then, which docs/redis-failures.md excepts. */
  mayHaveLostBoth(from: number): boolean;
  /** True if Redis may have lost data since then that it had confirmed. */
  mayHaveLostData(from: number): boolean;
}

/** So long after its end a fault still explains what clients see. */
const afterMs = noticedMs + loadMs;

/** Keeps what clients did and what was done to the cluster, and finds what the one does not explain of the other. */
export function createLedger({ hasSentinel = false } = {}): Ledger {
  const ofLosses = hasSentinel ? [...losing, ...losingWithSentinel] : losing;
  const startedAt = performance.now();
  const faults: Fault[] = [];
  const failures: Failure[] = [];
  const counts = new Map<string, Map<string, number>>();
  const longestMs = new Map<string, Longest>();
  const excused = new Map<string, number>();
  let pending: Deed[] = [];

  const explained = (kind: FaultKind): readonly string[] =>
    ofLosses.includes(kind) ? [...explains[kind], 'history_lost'] : explains[kind];
  const fail = (what: string): void => {
    failures.push({ atMs: Math.round(performance.now() - startedAt), what });
    process.stdout.write(
      `FAILURE at ${Math.round((performance.now() - startedAt) / 1_000)} s: ${what.slice(0, 1_000)}\n`,
    );
  };
  const nearOf = (from: number, to: number): Fault[] =>
    faults.filter(({ beganAt, endedAt }) => beganAt <= to && endedAt + afterMs >= from);
  const judgeOne = (deed: Deed): void => {
    const { kind, outcome, ownMs, isDropping = false } = deed;
    const of = counts.get(kind) ?? new Map<string, number>();
    counts.set(kind, of.set(outcome, (of.get(outcome) ?? 0) + 1));
    const near = nearOf(deed.startedAt, deed.endedAt);
    const tookMs = deed.endedAt - deed.startedAt;
    const longest = longestMs.get(kind) ?? { calm: undefined, fault: undefined };
    const which = near.length === 0 ? 'calm' : 'fault';
    longest[which] = Math.max(longest[which] ?? 0, Math.round(tookMs));
    longestMs.set(kind, longest);
    const around = near.map((fault) => `${fault.what} (${Math.round(deed.startedAt - fault.beganAt)} ms before)`);
    const seen = deed.trail === undefined || deed.trail.length === 0 ? '' : ` (${deed.trail.join(', ')})`;
    const where = `${kind} from ${Math.round(deed.startedAt - startedAt)} ms for ${Math.round(tookMs)} ms${seen}`;
    const complaintWith = (those: readonly Fault[]): string | undefined => {
      const allowed = [
        'answered',
        ...(isDropping ? ['broken'] : []),
        ...those.flatMap(({ kind: of }) => explained(of)),
      ];
      if (!allowed.includes(outcome)) return outcome;
      const limitMs = those.reduce(
        (sum, { beganAt, endedAt }) => sum + Math.min(endedAt, deed.endedAt) - beganAt + noticedMs,
        ownMs + loadMs,
      );
      return tookMs > limitMs ? `more than ${Math.round(limitMs)} ms, ${outcome}` : undefined;
    };
    const complaint = complaintWith(near);
    if (complaint !== undefined) fail(`${where}: ${complaint}; near: ${around.join(', ') || 'no fault'}`);
    else if (complaintWith(near.filter(({ kind: of }) => of !== busy)) !== undefined)
      excused.set(`${kind}, ${outcome}`, (excused.get(`${kind}, ${outcome}`) ?? 0) + 1);
  };

  const nearSince = (from: number): Fault[] => nearOf(from, performance.now());
  const ownersNear = (from: number): Fault[] => nearSince(from).filter(({ kind }) => takeovers.includes(kind));
  const hasLostBoth = (from: number): boolean => {
    const owners = ownersNear(from);
    return nearSince(from).some(({ kind, beganAt, endedAt }) => {
      const isNear = (other: Fault): boolean =>
        other.beganAt <= endedAt + noticedMs && other.endedAt + afterMs >= beganAt;
      return ofLosses.includes(kind) && owners.some(isNear);
    });
  };

  return {
    faults,
    failures,
    counts,
    longestMs,
    excused,
    fail,
    async during(kind, what, run, frozen) {
      const fault: Fault = { kind, what, frozen, beganAt: performance.now(), endedAt: Number.POSITIVE_INFINITY };
      faults.push(fault);
      try {
        return await run();
      } finally {
        fault.endedAt = performance.now();
      }
    },
    noteBusy(what, since, until = performance.now()) {
      const last = faults.findLast(({ kind }) => kind === busy);
      // One time that the machine is busy is seen by several probes.
      if (last !== undefined && since - last.endedAt < noticedMs) last.endedAt = Math.max(last.endedAt, until);
      else faults.push({ kind: busy, what: `${busy}: ${what}`, beganAt: since, endedAt: until });
    },
    noteFailover(since) {
      const planned = nearOf(since, performance.now()).some(({ kind }) => kind.startsWith('redis failover'));
      if (planned) return;
      const what = 'the sentinel chose the replica by itself';
      faults.push({ kind: 'redis failover behind', what, beganAt: since, endedAt: performance.now() });
    },
    note: (deed) => void pending.push(deed),
    judge(all = false) {
      const isDue = ({ endedAt }: Deed): boolean => all || performance.now() - endedAt > 1_000;
      const due = pending.filter(isDue);
      pending = pending.filter((deed) => !isDue(deed));
      for (const deed of due) judgeOne(deed);
    },
    mayHaveEnded: (from) => hasLostBoth(from) || ownersNear(from).length > maxTakeovers,
    mayHaveLostBoth: hasLostBoth,
    mayHaveLostData: (from) => nearSince(from).some(({ kind }) => ofLosses.includes(kind)),
  };
}
