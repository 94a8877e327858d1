/**
 * The state of the model of decision 0015: one Redis, two processes, one session, one client with one request.
 *
 * Numbers are small on purpose. A name is `process + 1 + 2 * life`: A is 1, 3, 5 …, B is 2, 4, 6 …, nobody is 0. An event
 * id is `epoch * 10 + seq`, so that ids compare as they do in the log; 0 stands before the first event.
 */

import { type Budget, noFaults } from './budget.ts';

/** An event of the request's stream. `previous` is the id of the event before it: the chain that shows a gap. */
export interface Event {
  readonly id: number;
  readonly previous: number;
  /** Who made it and what it is: the same id with another content is a fault. */
  readonly content: string;
  readonly isLast: boolean;
}

/** What instances say to each other. From the ingress: `run`, `resume`. From the owner: the others. */
export interface Letter {
  readonly kind: 'run' | 'resume' | 'answer' | 'event' | 'none' | 'broken';
  /** `resume`: the last event that the client has. */
  readonly cursor: number;
  readonly event: Event | null;
}

/** The connection of one request from an ingress to an owner. */
export interface Connection {
  readonly from: number;
  readonly to: number;
  /** Which asking of the ingress it belongs to. */
  readonly asking: number;
  /** The ingress still waits for it. */
  readonly isOpen: boolean;
  /** Not received yet. It may arrive after the ingress has given it up, or never. */
  readonly request: Letter | null;
  /** On their way back, in order. */
  readonly answers: readonly Letter[];
}

/** What of a log an owner and the record know: the newest event of the stream, whether that ended it, the pending table. */
export interface LogState {
  readonly newest: number;
  readonly hasEnded: boolean;
  readonly isPending: boolean;
}

/** Everything in the store. `epoch` 0: there is no record. */
export interface Redis {
  owner: number;
  epoch: number;
  hasTombstone: boolean;
  /** The seq of the newest event of `epoch`. */
  tail: number;
  stream: LogState;
  log: readonly Event[];
  leases: ('none' | 'held' | 'dead')[];
  /** Counts losses of all data. */
  birth: number;
  /** The data are younger than lease + 2 s. */
  isYoung: boolean;
}

/** A command on its way to Redis, and its reply on the way back. */
export interface Command {
  readonly kind: 'append' | 'register' | 'takeOver';
  readonly name: number;
  readonly epoch: number;
  /** The owner that the caller knows of. */
  readonly from: number;
  readonly event: Event | null;
  readonly tail: number;
  readonly stream: LogState;
  readonly reply: string | null;
  /** A new term began since it was sent. */
  readonly isOfOlderTerm: boolean;
  /** The sender's own clock ran out since it was sent. */
  readonly hasLapsed: boolean;
}

/** An ingress that gets the answer: its name, which asking of it, how far it got. */
export interface Reader {
  readonly name: number;
  readonly asking: number;
  readonly cursor: number;
}

/** A session at its owner. */
export interface Session {
  epoch: number;
  isVerified: boolean;
  /** Registered, but not verified until it has a new epoch (amendment `suspect`). */
  isClaimed: boolean;
  /** Since it was verified last: the lease ran out; the connection broke or the birth changed. */
  hasLapsed: boolean;
  hasBroken: boolean;
  /** The call at the backend: none, running (n of its events made), answered (a call's answer waits to be said). */
  call: 'none' | 'running' | 'answered';
  /** Where its answer goes, by the process there. */
  readers: readonly (Reader | null)[];
  /** The stream before this epoch, the events of this epoch, how many of them are known to be stored. */
  base: LogState;
  events: readonly Event[];
  stored: number;
  /** How many events the running call made, in any epoch. */
  made: number;
}

/** One request at its ingress. `sent` waits for `to`. */
export interface Exchange {
  step: 'none' | 'unsent' | 'sent';
  to: number;
  asking: number;
}

/** One instance: a process with a name at a time. */
export interface Process {
  isUp: boolean;
  name: number;
  /** Its own monotonic clock says that it holds the lease. */
  holdsByClock: boolean;
  /** …by a confirmation from before the last loss of writes or data. */
  isClockStale: boolean;
  /** Its connection is dead and it has not noticed. */
  isCut: boolean;
  /** Its connection has been healthy for a lease. */
  isHealthy: boolean;
  /** What its last renewal said of the data. */
  birth: number;
  sawYoung: boolean;
  session: Session | null;
  exchange: Exchange;
  command: Command | null;
  /** A takeover without an answer, to be asked again with the same arguments. */
  retry: Command | null;
}

/** The client: where it is connected, how far it got, what it was told. */
export interface Client {
  at: number;
  cursor: number;
  seen: readonly string[];
  answers: number;
  /** Its connection broke before it had an event id: its request is not accepted any more (P3). */
  isOver: boolean;
}

/** What only the checker knows. */
export interface Ghost {
  /** The highest epoch that Redis ever gave, and to which process each was given. */
  issued: number;
  holders: readonly number[];
  everStored: Readonly<Record<number, string>>;
  handedOver: number;
  isDeleted: boolean;
  /** Writes were lost (after the deletion, if there was one). */
  hasLost: boolean;
  /** What an action did wrong. */
  fault: string;
}

/** One state. `replica`: what a failover comes back to. `delayed`: a command that nobody waits for. */
export interface State {
  redis: Redis;
  replica: Redis | null;
  connections: readonly Connection[];
  delayed: Command | null;
  processes: [Process, Process];
  client: Client;
  ghost: Ghost;
  budget: Budget;
}

export const names = 8;
/** Where a client is whose connection broke; and where clients are that are everywhere. */
export const cutOff = -1;
export const everywhere = -2;
export const processOf = (name: number): number => (name - 1) % 2;
export const noStream: LogState = { newest: 0, hasEnded: false, isPending: false };

export const emptyRedis = (birth: number): Redis => ({
  owner: 0,
  epoch: 0,
  hasTombstone: false,
  tail: 0,
  stream: noStream,
  log: [],
  leases: Array(names + 1).fill('none'),
  birth,
  isYoung: birth > 0,
});

export const newProcess = (index: number): Process => ({
  isUp: true,
  name: index + 1,
  holdsByClock: true,
  isClockStale: false,
  isCut: false,
  isHealthy: true,
  birth: 0,
  sawYoung: false,
  session: null,
  exchange: { step: 'none', to: 0, asking: 0 },
  command: null,
  retry: null,
});

export const newSession = (epoch: number, isVerified: boolean, base: LogState): Session => ({
  epoch,
  isVerified,
  isClaimed: false,
  hasLapsed: false,
  hasBroken: false,
  call: 'none',
  readers: [null, null],
  base,
  events: [],
  stored: 0,
  made: 0,
});

/** A is the owner under epoch 1, both hold their leases, the client has sent its request to process `clientAt` (or `everywhere`). */
export function initialState(clientAt: number, budget: Partial<Budget>, hasReplica = false): State {
  const redis = emptyRedis(0);
  Object.assign(redis, { owner: 1, epoch: 1 });
  redis.leases[1] = redis.leases[2] = 'held';
  const processes: [Process, Process] = [newProcess(0), newProcess(1)];
  processes[0].session = newSession(1, true, noStream);
  processes.forEach(({ exchange }, index) => {
    if (clientAt === index || clientAt === everywhere) exchange.step = 'unsent';
  });
  return {
    redis,
    replica: hasReplica ? copyRedis(redis) : null,
    connections: [],
    delayed: null,
    processes,
    client: { at: clientAt, cursor: 0, seen: [], answers: 0, isOver: false },
    ghost: {
      issued: 1,
      holders: [-1, 0],
      everStored: {},
      handedOver: 0,
      isDeleted: false,
      hasLost: false,
      fault: '',
    },
    budget: { ...noFaults, ...budget },
  };
}

export const copyRedis = (redis: Redis): Redis => ({ ...redis, leases: [...redis.leases] });

const copyProcess = (process: Process): Process => ({
  ...process,
  session: process.session === null ? null : { ...process.session },
  exchange: { ...process.exchange },
});

/**
 * A copy that may be changed without changing the original. `replica` and `budget` are never changed, only replaced.
 * @param only the process that will change, if it is only one
 */
export const copyOf = (state: State, only?: number): State => ({
  redis: copyRedis(state.redis),
  replica: state.replica,
  connections: state.connections,
  delayed: state.delayed,
  processes: [
    only === 1 ? state.processes[0] : copyProcess(state.processes[0]),
    only === 0 ? state.processes[1] : copyProcess(state.processes[1]),
  ],
  client: { ...state.client },
  ghost: { ...state.ghost },
  budget: state.budget,
});
