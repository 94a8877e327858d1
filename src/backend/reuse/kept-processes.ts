// src/backend/reuse: processes that one session after another of the same client uses.
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { valueAt } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import { detach } from '../../util/boundary.ts';
import type { BackendEvents, OpenBackend, OpenOptions, ProcessHolder } from '../backend.ts';
import { InitializedProcess } from './initialized-process.ts';
import { type ProcessSource, ReusableBackend } from './reusable-backend.ts';

/** Which sessions may use a process one after another: none, those of one user, or those of all users. */
export type Reuse = 'none' | 'user' | 'all';

/** Options of `KeptProcesses`. */
export interface KeptProcessesOptions {
  readonly open: OpenBackend;
  /** May change at any time. Processes that are already kept are then not used again. */
  reuse(): Reuse;
  /** How long a process is kept after its session, in milliseconds. */
  readonly lingerMs: number;
  /** The most kept processes without a session (P8). */
  readonly maxKept: number;
}

/** The most kept processes of one user without a session (P8). */
const maxKeptOfUser = 4;

/**
 * How many sessions of one client may be without their process because a newer session took it (P8). Hosted clients
 * open a session for each call and never return to an older one.
 */
const maxSuperseded = 16;

/** How many sessions without their process are remembered in all (P8). */
const maxRemembered = 1_000;

/** After so many kept processes in a row that did not answer a ping, the server is taken to know no ping. */
const maxUnanswered = 3;

/** How long a new session waits for a session of the same client that is about to become quiet. */
const maxWaitMs = 300;

/** A process without a session, and the end of its time. */
interface KeptProcess {
  readonly key: string;
  readonly process: InitializedProcess;
  readonly timer: NodeJS.Timeout;
}

/**
 * Keeps the processes of sessions that ended, for the next session of the same client (docs/decisions/0087). The
 * client is the same if the user is the same and the parameters of `initialize` are equal byte by byte. A process
 * serves one session at a time. A new session may also take the process of a session that its client has left.
 */
export class KeptProcesses implements ProcessSource {
  readonly #options: KeptProcessesOptions;
  /** Processes without a session, the one that was left last at the end. */
  #kept: KeptProcess[] = [];
  /** The sessions that use a process, by key, the newest last. */
  readonly #holders = new Map<string, Map<ProcessHolder, InitializedProcess>>();
  /** Sessions whose process a newer session took, with their key, the oldest first. */
  readonly #superseded = new Map<ProcessHolder, string>();
  /** Kept processes in a row that did not answer a ping. */
  #unanswered = 0;
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: KeptProcessesOptions) {
    this.#options = options;
  }

  /** Opens a backend. A session whose holder is known may get a kept process, or leave its own to another session. */
  readonly open: OpenBackend = (events, opening) => {
    const holder = opening?.holder;
    if (holder === undefined) return this.#options.open(events, opening);
    const isPossible = !this.#isClosed && this.#unanswered < maxUnanswered && opening?.resume === undefined;
    if (isPossible && this.#options.reuse() !== 'none')
      return new ReusableBackend(this, events, { ...opening, holder });
    holder.onStart();
    return this.#options.open(events, opening);
  };

  /** The number of processes without a session. */
  get size(): number {
    return this.#kept.length;
  }

  /** The sessions with the same key may use each other's processes. */
  keyOf(principal: Principal | undefined, initialize: Message): string {
    const { issuer = '', subject = '', client = '', credentials = '' } = this.#ownerOf(principal) ?? {};
    const params = valueAt(initialize.text, ['params']) ?? Buffer.alloc(0);
    const owner = JSON.stringify([issuer, subject, client, credentials]);
    return createHash('sha256').update(owner).update(params).digest('base64url');
  }

  /** Starts a process for a session. */
  start(events: BackendEvents, opening: OpenOptions): InitializedProcess {
    return new InitializedProcess(
      (processEvents) => this.#options.open(processEvents, opening),
      events,
      this.#ownerOf(opening.principal),
    );
  }

  /** True if a session with this key may get a process without a start. */
  mayHave(key: string): boolean {
    return this.#holders.has(key) || this.#kept.some((kept) => kept.key === key);
  }

  /**
   * Takes a process that was left by the last session with this key, or that a session with this key can spare.
   * @returns undefined if there is none
   */
  async take(key: string): Promise<InitializedProcess | undefined> {
    const deadline = performance.now() + maxWaitMs;
    for (;;) {
      const kept = this.#remove((each) => each.key === key);
      if (kept !== undefined) {
        const isReady = await kept.isReady();
        this.#unanswered = isReady ? 0 : this.#unanswered + 1;
        if (isReady) return kept;
        this.#close(kept);
        continue;
      }
      const releasable = [...(this.#holders.get(key) ?? [])].flatMap(([holder, process]) =>
        process.isReusable ? [{ holder, inMs: holder.releasableInMs }] : [],
      );
      const spare = releasable.findLast(({ inMs }) => inMs === 0);
      if (spare !== undefined) {
        this.#supersede(key, spare.holder);
        continue;
      }
      const soonestMs = Math.min(...releasable.map(({ inMs }) => inMs));
      if (this.#isClosed || performance.now() + soonestMs > deadline) return undefined;
      await delay(Math.ceil(soonestMs), undefined, { ref: false });
    }
  }

  /** A session uses a process from now on. */
  hold(key: string, holder: ProcessHolder, process: InitializedProcess): void {
    const holders = this.#holders.get(key) ?? new Map<ProcessHolder, InitializedProcess>();
    this.#holders.set(key, holders.set(holder, process));
    this.#superseded.delete(holder);
  }

  /** A session uses its process no more. */
  drop(key: string, holder: ProcessHolder): void {
    const holders = this.#holders.get(key);
    holders?.delete(holder);
    if (holders?.size === 0) this.#holders.delete(key);
  }

  /** Keeps a process that its session has left, or ends it if there is no room. */
  keep(key: string, process: InitializedProcess): void {
    const { lingerMs, maxKept, reuse } = this.#options;
    process.leave();
    if (this.#isClosed || lingerMs === 0 || reuse() === 'none') return this.#close(process);
    const ofOwner = this.#kept.filter((kept) => isSameOwner(kept.process, process));
    if (ofOwner.length >= maxKeptOfUser) this.#end(ofOwner[0]?.process);
    if (this.#kept.length >= maxKept) this.#end(this.#kept[0]?.process);
    const timer = setTimeout(() => this.#end(process), lingerMs).unref();
    process.onUnusedEnd = () => this.#remove((kept) => kept.process === process);
    this.#kept.push({ key, process, timer });
  }

  /** Ends the kept processes. Sessions that are still open keep theirs, and end them with the session. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.clear();
    await Promise.all(this.#ending);
  }

  /** Ends the kept processes. */
  clear(): void {
    for (const { process } of [...this.#kept]) this.#end(process);
  }

  #ownerOf(principal: Principal | undefined): Principal | undefined {
    return this.#options.reuse() === 'all' ? undefined : principal;
  }

  /** A session gives its process up. Too many such sessions end, the oldest first. */
  #supersede(key: string, holder: ProcessHolder): void {
    this.drop(key, holder);
    holder.release();
    this.#superseded.set(holder, key);
    const ofKey: ProcessHolder[] = [];
    for (const [other, otherKey] of this.#superseded) {
      if (other.isOver) this.#superseded.delete(other);
      else if (otherKey === key) ofKey.push(other);
    }
    const [oldest] = this.#superseded.keys();
    if (ofKey.length > maxSuperseded) this.#expire(ofKey[0]);
    else if (this.#superseded.size > maxRemembered) this.#expire(oldest);
  }

  #expire(holder: ProcessHolder | undefined): void {
    if (holder === undefined) return;
    this.#superseded.delete(holder);
    holder.expire();
  }

  /** Removes the process that was left last among those that match. */
  #remove(matches: (kept: KeptProcess) => boolean): InitializedProcess | undefined {
    const index = this.#kept.findLastIndex(matches);
    const [kept] = index < 0 ? [] : this.#kept.splice(index, 1);
    clearTimeout(kept?.timer);
    return kept?.process;
  }

  #end(process: InitializedProcess | undefined): void {
    const removed = this.#remove((kept) => kept.process === process);
    if (removed !== undefined) this.#close(removed);
  }

  #close(process: InitializedProcess): void {
    const ended = process.close();
    this.#ending.add(ended);
    detach(
      'backend',
      ended.then(() => this.#ending.delete(ended)),
    );
  }
}

const isSameOwner = ({ owner: a }: InitializedProcess, { owner: b }: InitializedProcess): boolean =>
  JSON.stringify(a) === JSON.stringify(b);
