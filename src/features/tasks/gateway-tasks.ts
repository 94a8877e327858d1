import { createHash, randomBytes } from 'node:crypto';
import type { TasksOptions } from '../../app/features/eras.ts';
import { isReason, type Reason } from '../../core/protocol/faults.ts';
import { parseOwn, scalarAt, scanObject } from '../../core/protocol/json.ts';
import { type Message, memberValue, readGatewayMessage } from '../../core/protocol/message/message.ts';
import type { Principal } from '../../core/protocol/principal.ts';
import { retryWhileUnavailable } from '../../core/store/retry-unavailable.ts';
import { StoreUnavailable, tryStore } from '../../core/store/store-unavailable.ts';
import { detach } from '../../core/util/boundary.ts';
import { errorOf, RunningTask, type TaskCall } from './running-task.ts';
import { isOpen, leftMs, StoredTasks } from './stored-tasks.ts';
import { inStatus, type TaskFacts, type TaskRecord } from './task-record.ts';
import { TaskRoom } from './task-room.ts';
import { TaskWatches } from './task-watches.ts';

/** Whose a task is: the client and the server that it was made for. Nobody else can see the task (P11). */
export interface TaskClient {
  readonly principal: Principal;
  /** The mark of the client's own credentials for the server; empty for none. */
  readonly credentials: string;
  readonly server: string;
}

/**
 * Opens the call of a task that another instance has begun, for the client that asks about the task. The call is sent,
 * or read on, later.
 */
export type CallOpener = (task: RunningTask, request: Message) => TaskCall;

/** The ids of tasks of the gateway begin with this, so that the server is asked about its own ones. */
const idPrefix = 'gangway-';

/** True for the id of a task that the gateway may have made. */
export const isGatewayTask = (id: unknown): id is string => typeof id === 'string' && id.startsWith(idPrefix);

/** The longest request that is kept with its task (P8). The call of a longer one ends with its instance. */
const maxRequestBytes = 64 * 1024;

/** A longer name of a tool is cut where it is shown. */
const maxNameLength = 256;

/** How often a task may lose its instance (P8). */
const maxMoves = 100;

/** How long a state that must not get lost waits for a store that is away, in milliseconds. */
const storeWaitMs = 30_000;

/** A task as the operator sees it. */
export interface ShownTask {
  /** A short name, which is no use to clients. */
  readonly name: string;
  readonly server: string;
  readonly tool: string | undefined;
  readonly user: string | undefined;
  readonly status: TaskFacts['status'];
  /** By the system's clock, in milliseconds. */
  readonly createdAt: number;
}

/** A state that is being stored. */
interface Storing {
  readonly done: Promise<boolean>;
  /** True if the state has changed since. */
  isStale: boolean;
}

/**
 * The tasks that the gateway makes of calls (SEP-2663). The instance that runs a call owns its task and stores its
 * states; every instance reads them, and passes answers and cancellations on to the owner. An end is stored once: who
 * comes first decides, so a task ends once, and the same for everybody. If the owner is lost, one other instance goes on.
 */
export class GatewayTasks {
  readonly #options: TasksOptions;
  readonly #stored: StoredTasks;
  readonly #room: TaskRoom;
  readonly #watches: TaskWatches;
  readonly #running = new Map<string, RunningTask>();
  /** The tasks whose state is being stored. */
  readonly #storing = new Map<RunningTask, Storing>();
  /** The tasks that this instance takes over at the moment. */
  readonly #taken = new Map<string, Promise<TaskRecord>>();
  /** The name under which this instance listens for answers and cancellations, and how to stop. */
  #listening: { readonly name: string; readonly done: Promise<(() => void) | undefined> } | undefined;
  #isLeaving = false;
  #isClosed = false;

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#stored = new StoredTasks(options);
    this.#room = new TaskRoom(options);
    this.#watches = new TaskWatches({ stored: this.#stored, onFailed: (cause) => options.onFailed(cause) });
  }

  /** The number of calls that run as tasks here. */
  get running(): number {
    return this.#running.size;
  }

  /** The tasks whose calls run here, newest first, for the operator. */
  list(): readonly ShownTask[] {
    const shown = Array.from(this.#running, ([id, { record, isOver }]) => ({ id, isOver, ...record.facts }));
    return shown
      .filter(({ isOver }) => !isOver)
      .map(({ id, server, tool, principal, status, createdAt }) => ({
        name: nameOf(id),
        server,
        tool,
        user: principal.subject || undefined,
        status,
        createdAt,
      }))
      .sort((a, b) => b.createdAt - a.createdAt);
  }

  /** Cancels a task that runs here, by its short name. False if there is none. */
  cancelByName(name: string): boolean {
    for (const [id, task] of this.#running) {
      if (nameOf(id) !== name || task.isOver) continue;
      task.cancel();
      return true;
    }
    return false;
  }

  /**
   * Makes a task of a call. Resolves once the task can be found on every instance. Resolves with undefined if the call
   * stays a call: there is no room, the store is away, or the task is no longer wanted.
   * @param isWanted false once the call is answered, or its client has left
   */
  async begin(of: TaskClient, call: TaskCall, isWanted: () => boolean): Promise<RunningTask | undefined> {
    const asker = digestOf(of);
    const { request } = call;
    const isKept = request.text.length <= maxRequestBytes;
    const textBytes = isKept || call.mayAsk ? request.text.length : 0;
    if (this.#isClosed || !this.#room.hasRoomHere(textBytes)) return undefined;
    const { instances, ttlMs, maxRunMs } = this.#options;
    const id = idPrefix + randomBytes(18).toString('base64url');
    const owner = instances.current();
    const now = Date.now();
    const times = { createdAt: now, updatedAt: now, ttlMs: maxRunMs + ttlMs };
    const mayRunAgain = isKept && call.isHarmless;
    const goingOn = isKept ? ({ isKept, mayRunAgain } as const) : {};
    const { principal, server } = of;
    const name = memberValue(request, 'params', 'name');
    const tool = typeof name === 'string' ? name.slice(0, maxNameLength) : undefined;
    const facts: TaskFacts = { status: 'working', owner, asker, server, tool, principal, ...times, ...goingOn };
    const task = this.#createTask(id, facts);
    task.attach(call);
    this.#room.noteHere(id, textBytes);
    this.#running.set(id, task);
    const isReserved = await this.#reserve(asker, id, textBytes, times.ttlMs);
    const isStored =
      isReserved &&
      (await this.#listen(owner)) &&
      (!isKept || (await this.#write(() => this.#stored.setRequest(id, request.text, times.ttlMs)))) &&
      (await this.#setState(task));
    if (isStored && isWanted()) {
      this.#options.onTask({ server, what: 'created', tool, principal, durationMs: 0, reason: undefined });
      return task;
    }
    // Nobody was told of it.
    task.isOver = true;
    this.#forget(id);
    if (isReserved) await this.#write(() => this.#room.release(asker, id));
    if (isStored) await this.#write(() => this.#stored.discard(id));
    return undefined;
  }

  /** Reserves room in the store. False if there is none, or if the store is away. */
  async #reserve(asker: string, id: string, textBytes: number, ttlMs: number): Promise<boolean> {
    let isReserved = false;
    await this.#write(async () => {
      isReserved = await this.#room.reserve(asker, id, textBytes, ttlMs);
    });
    return isReserved;
  }

  #createTask(id: string, facts: TaskFacts): RunningTask {
    const { maxTextBytes } = this.#options;
    const task: RunningTask = new RunningTask(id, facts, {
      maxTextBytes,
      store: () => this.#storeState(task),
      end: (record) => detach('request', this.#end(id, record)),
      lost: (reason, maySendAgain) => detach('request', this.#handleLoss(task, reason, maySendAgain)),
      answersFor: (keys) => this.#stored.answers(id, keys),
    });
    return task;
  }

  /**
   * Finds a task of this client. Undefined if there is none. Rejects with `StoreUnavailable`.
   * @param open opens the call if its instance is lost and this one goes on with it
   */
  async find(id: string, of: TaskClient, open?: CallOpener): Promise<TaskRecord | undefined> {
    const record = await this.#stored.find(id);
    if (record === undefined || record.facts.asker !== digestOf(of)) return undefined;
    if (!isOpen(record.facts) || (await this.#isRunning(id, record.facts.owner))) return record;
    const taking = this.#taken.get(id) ?? this.#takeOver(id, record, open);
    this.#taken.set(id, taking);
    try {
      return await taking;
    } finally {
      this.#taken.delete(id);
    }
  }

  /**
   * Passes answers to a task of this client. False if there is no such task. Rejects with `StoreUnavailable`.
   * @param open as for `find`
   */
  async answer(id: string, of: TaskClient, answers: ReadonlyMap<string, Buffer>, open?: CallOpener): Promise<boolean> {
    const record = await this.find(id, of, open);
    if (record === undefined) return false;
    if (record.facts.status !== 'input_required') return true;
    const asked = keysOf(record.text);
    const taken = [...answers].filter(([key]) => asked.has(key));
    // Stored first: the client does not send them again.
    const kept = await Promise.all(
      taken.map(async ([key, text]) => {
        const first = await this.#stored.keepAnswer(id, key, text, leftMs(record.facts));
        return [key, first] as const;
      }),
    );
    const running = this.#running.get(id);
    if (running !== undefined) running.answer(new Map(kept));
    else await this.#tell(record.facts.owner, { id, answered: kept.map(([key]) => key) });
    return true;
  }

  /**
   * Cancels a task of this client. False if there is no such task. Rejects with `StoreUnavailable`.
   * @param open as for `find`
   */
  async cancel(id: string, of: TaskClient, open?: CallOpener): Promise<boolean> {
    const record = await this.find(id, of, open);
    if (record === undefined) return false;
    const running = this.#running.get(id);
    if (running !== undefined) running.cancel();
    else if (isOpen(record.facts)) {
      await this.#keepEnd(id, { facts: inStatus(record.facts, 'cancelled'), text: nothing });
      await this.#tell(record.facts.owner, { id, cancelled: true });
    }
    return true;
  }

  /** How many more tasks a client may watch at this instance (P8). */
  roomToWatch(of: TaskClient): number {
    return this.#watches.roomOf(digestOf(of));
  }

  /**
   * Tells of a task of this client: its state now, and each later one up to its end. Resolves with the function that
   * stops it. Rejects with `StoreUnavailable`.
   */
  watch(id: string, of: TaskClient, tell: (record: TaskRecord) => void, open?: CallOpener): Promise<() => void> {
    return this.#watches.watch(id, digestOf(of), () => this.find(id, of, open), tell);
  }

  /** This instance is about to stop: tasks that have lost their call are left to others. */
  leave(): void {
    this.#isLeaving = true;
  }

  /** Leaves the tasks whose calls still run to other instances, and stops listening. */
  async close(): Promise<void> {
    this.#isLeaving = true;
    this.#isClosed = true;
    await Promise.all(Array.from(this.#running.values(), (task) => !task.isOver && this.#handOver(task)));
    (await this.#listening?.done)?.();
  }

  /** Stores that the task has no owner. Whoever asks for it next goes on with it. */
  async #handOver(task: RunningTask): Promise<void> {
    const record = task.leave();
    await this.#storing.get(task)?.done;
    await this.#write(() => this.#stored.set(task.id, record));
    this.#forget(task.id);
  }

  /** Goes on with a task whose instance is gone, if its call can go on. One instance does, and once. */
  async #takeOver(id: string, record: TaskRecord, open: CallOpener | undefined): Promise<TaskRecord> {
    const { instances } = this.#options;
    const { facts } = record;
    const { round, point, mayRunAgain = false, isKept } = facts;
    const canGoOn = isKept === true && (round !== undefined || point !== undefined || mayRunAgain);
    if (!canGoOn) return this.#endLost(id, record);
    if (this.#isLeaving || open === undefined) return record;
    const owner = instances.current();
    for (let moves = (facts.moves ?? 0) + 1; moves <= maxMoves; moves += 1) {
      const holder = await this.#stored.claim(id, moves, owner, leftMs(facts));
      if (holder === undefined) return this.#goOn(id, { ...record, facts: { ...facts, owner, moves } }, open);
      if (await this.#isRunning(id, holder)) return record;
    }
    return this.#endLost(id, record);
  }

  /** Goes on with a task that this instance has claimed. */
  async #goOn(id: string, record: TaskRecord, open: CallOpener): Promise<TaskRecord> {
    const { owner } = record.facts;
    const request = await this.#stored.request(id);
    if (request === undefined) return this.#endLost(id, record);
    const task = this.#createTask(id, record.facts);
    // One instance had room for it: a full table here is no reason to lose it.
    this.#room.noteHere(id, request.length + record.text.length);
    this.#running.set(id, task);
    const call = open(task, readGatewayMessage(request));
    const isStored = (await this.#listen(owner)) && (await this.#write(() => this.#stored.set(id, record)));
    if (isStored) {
      detach(
        'request',
        this.#write(() => task.goOn(call, record)),
      );
      return record;
    }
    // Whoever asks next claims it again.
    task.isOver = true;
    this.#forget(id);
    throw new StoreUnavailable('unreachable');
  }

  /** Decides about a lost call. An instance that stops leaves that to another one. */
  async #handleLoss(task: RunningTask, reason: Reason, maySendAgain: boolean): Promise<void> {
    if (this.#isLeaving) return this.#handOver(task);
    if (await this.#isTakenOver(task)) {
      task.leave();
      this.#forget(task.id);
    } else if (maySendAgain) await this.#sendAgain(task, reason);
    else task.failLost(reason);
  }

  /** True if another instance goes on with a task, because it has taken this one for lost. */
  async #isTakenOver({ id, record }: RunningTask): Promise<boolean> {
    const find = () => this.#stored.find(id);
    const stored = await retryWhileUnavailable(find, AbortSignal.timeout(storeWaitMs)).catch(() => undefined);
    return stored !== undefined && isOpen(stored.facts) && stored.facts.owner !== record.facts.owner;
  }

  /** Sends a lost call again, once among all instances. */
  async #sendAgain(task: RunningTask, reason: Reason): Promise<void> {
    const mark = randomBytes(9);
    const claim = () => this.#stored.claimRerun(task.id, mark, leftMs(task.record.facts));
    const isClaimed = await retryWhileUnavailable(claim, AbortSignal.timeout(storeWaitMs)).catch(() => false);
    if (isClaimed) await task.restart();
    else task.failLost(reason);
  }

  /** True if the call of a task still runs somewhere. */
  async #isRunning(id: string, owner: string): Promise<boolean> {
    if (this.#running.has(id)) return true;
    const { instances } = this.#options;
    return owner !== '' && owner !== instances.current() && (await instances.isAlive(owner));
  }

  /** Ends a task whose instance is gone. Another instance may have done so, or the owner itself. */
  #endLost(id: string, { facts }: TaskRecord): Promise<TaskRecord> {
    return this.#keepEnd(id, { facts: inStatus(facts, 'failed'), text: errorOf('outcome_unknown') });
  }

  async #end(id: string, record: TaskRecord): Promise<void> {
    const { ttlMs } = this.#options;
    const { length } = record.text;
    const failed = { facts: inStatus(record.facts, 'failed'), text: errorOf('event_too_large') };
    const kept = this.#room.hasRoomHere(length) ? record : failed;
    this.#room.noteHere(id, kept.text.length);
    setTimeout(() => this.#forget(id), ttlMs).unref();
    const keep = async (): Promise<void> => {
      const fits = kept === failed || (await this.#room.reserve(record.facts.asker, id, length, ttlMs));
      await this.#keepEnd(id, fits ? kept : failed);
    };
    // Until the end is stored, the task counts as running: nobody may take it for lost.
    await this.#write(() => retryWhileUnavailable(keep, AbortSignal.timeout(ttlMs)));
    this.#running.delete(id);
  }

  /** Stores the newest state, after the one that is being stored. Resolves with false if the store is away for long. */
  #storeState(task: RunningTask): Promise<boolean> {
    const earlier = this.#storing.get(task);
    if (earlier !== undefined) {
      earlier.isStale = true;
      return earlier.done;
    }
    const storing = { isStale: true, done: Promise.resolve(true) };
    const store = async (): Promise<boolean> => {
      let isStored = true;
      while (storing.isStale && !task.isOver) {
        storing.isStale = false;
        const set = () => this.#setStateOrFail(task);
        isStored = await this.#write(() => retryWhileUnavailable(set, AbortSignal.timeout(storeWaitMs)));
      }
      this.#storing.delete(task);
      return isStored;
    };
    this.#storing.set(task, storing);
    storing.done = store();
    return storing.done;
  }

  /** Stores an end, and returns the end that counts. */
  async #keepEnd(id: string, { facts, text }: TaskRecord): Promise<TaskRecord> {
    const { ttlMs, onTask } = this.#options;
    const updatedAt = Date.now();
    const ended: TaskFacts = { ...facts, updatedAt, ttlMs: updatedAt - facts.createdAt + ttlMs };
    const { record, isFirst } = await this.#stored.keepEnd(id, { facts: ended, text }, ttlMs);
    if (isFirst) {
      const { server, tool, principal } = facts;
      const said = ended.status === 'failed' ? scalarAt(text, ['data', 'reason']) : undefined;
      const reason = typeof said === 'string' && isReason(said) ? said : undefined;
      const what = ended.status as 'completed' | 'failed' | 'cancelled';
      onTask({ server, what, tool, principal, durationMs: updatedAt - facts.createdAt, reason });
    }
    // The room of a task that has ended is that of its result.
    await this.#room.reserve(facts.asker, id, record.text.length, ttlMs);
    await this.#stored.noteEnd(id, record, ttlMs);
    return record;
  }

  #setState(task: RunningTask): Promise<boolean> {
    return this.#write(() => this.#setStateOrFail(task));
  }

  async #setStateOrFail(task: RunningTask): Promise<void> {
    const { record } = task;
    const { facts } = record;
    const isAsking = facts.status === 'input_required';
    if (isAsking && !(await this.#room.reserve(facts.asker, task.id, task.textBytes, leftMs(facts))))
      return task.failLost('event_too_large');
    await this.#stored.set(task.id, record);
    task.noteStored(record);
  }

  /** False if the store is away. */
  #write(write: () => Promise<unknown>): Promise<boolean> {
    return tryStore(write, (cause) => this.#options.onFailed(cause));
  }

  /** Listens for what other instances take for the tasks of this one. */
  async #listen(name: string): Promise<boolean> {
    if (this.#listening?.name !== name) {
      const earlier = this.#listening;
      const listener = { onChange: (text: Buffer) => this.#hear(text), onMissed: () => this.#catchUp() };
      const subscribed = this.#options.changes.subscribe(topicOf(name), listener).catch((cause: unknown) => {
        if (!(cause instanceof StoreUnavailable)) this.#options.onFailed(cause);
        return undefined;
      });
      this.#listening = { name, done: subscribed };
      if (earlier !== undefined)
        detach(
          'request',
          earlier.done.then((stop) => stop?.()),
        );
    }
    const isSubscribed = (await this.#listening?.done) !== undefined;
    if (!isSubscribed) this.#listening = undefined;
    return isSubscribed;
  }

  #hear(text: Buffer): void {
    const { id, answered, cancelled } = parseOwn(text) as News;
    const task = this.#running.get(id);
    if (task === undefined) return;
    if (cancelled === true) task.cancel();
    else if (answered !== undefined) detach('request', this.#collect(task, answered));
  }

  /** News may have been missed: looks at what is stored for each task that runs here. */
  #catchUp(): void {
    for (const task of this.#running.values()) {
      detach(
        'request',
        this.#write(async () => {
          if (await this.#stored.hasEnded(task.id)) task.cancel();
          else await this.#collect(task, [...keysOf(task.record.text)]);
        }),
      );
    }
  }

  async #collect(task: RunningTask, keys: readonly string[]): Promise<void> {
    task.answer(await this.#stored.answers(task.id, keys));
  }

  async #tell(owner: string, news: News): Promise<void> {
    await this.#options.changes.publish(topicOf(owner), Buffer.from(JSON.stringify(news)));
  }

  #forget(id: string): void {
    this.#running.delete(id);
    this.#room.forget(id);
  }
}

/** What an instance tells the owner of a task. */
interface News {
  readonly id: string;
  /** The keys of the questions whose answers are stored. */
  readonly answered?: readonly string[];
  readonly cancelled?: true;
}

const nothing = Buffer.alloc(0);
const nameOf = (id: string): string => createHash('sha256').update(id).digest('base64url').slice(0, 8);
const topicOf = (instance: string): string => `tasks of ${instance}`;

/** The keys of the questions of a task. */
function keysOf(questions: Buffer): ReadonlySet<string> {
  const members = questions.length === 0 ? undefined : scanObject(questions);
  return new Set(typeof members === 'object' ? members.keys : []);
}

const digestOf = ({ principal, credentials, server }: TaskClient): string => {
  const { issuer, subject, client } = principal;
  return createHash('sha256')
    .update(JSON.stringify([issuer, subject, client, credentials, server]))
    .digest('base64url');
};
