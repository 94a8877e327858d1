// src/features/sharing: processes that several sessions use, one after another or at the same time.

import type { KeptProcessesOptions } from '../../app/features/servers.ts';
import type { OpenBackend, OpenOptions, ProcessHolder } from '../../core/backend/backend.ts';
import type { AffinityPlace } from '../../core/protocol/affinity.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { anonymous, isSameUser, type Principal } from '../../core/protocol/principal.ts';
import { detach } from '../../core/util/boundary.ts';
import { Milestone } from '../../core/util/timing/milestone.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';
import { InitializedProcess } from './initialized-process.ts';
import { type ProcessKey, processKeyOf } from './process-key.ts';
import { type ProcessSource, ReusableBackend } from './reusable-backend.ts';
import { isSameOwner, RunningProcesses } from './running-processes.ts';
import { SessionPerCall } from './session-per-call.ts';

/** A session of modern clients. It keeps its process until it ends, and no other session takes it. */
class GroupHolder implements ProcessHolder {
  readonly isOver = false;
  readonly isLeft = false;
  readonly quietMs = Number.NEGATIVE_INFINITY;
  readonly answered = 0;

  onStart(): void {
    // The session counts its process itself.
  }

  release(): void {
    throw new Error('the process of a group is not given up');
  }

  expire(): void {
    throw new Error('the process of a group is not given up');
  }
}

/** The most kept processes of one user without a session (P8). */
const maxKeptOfUser = 4;

/**
 * How many sessions of one client may be without their process because a newer session took it (P8). Hosted clients
 * open a session for each call and never return to an older one.
 */
const maxSuperseded = 16;

/**
 * How many sessions with the same key may be open that share a process and do nothing (P8). Hosted clients open a
 * session for each call and never end it. A user who has several of them, or several servers, must stay below the
 * limit of sessions for each user, which is 100 by default.
 */
const maxQuiet = 16;

/** After so many new sessions, the quiet ones are counted. */
const quietSlack = 8;

/** How many sessions without their process are remembered in all (P8). */
const maxRemembered = 1_000;

/** After so many kept processes in a row that did not answer a ping, the server is taken to know no ping. */
const maxUnanswered = 2;

/** A process without a session, and the end of its time. */
interface KeptProcess {
  readonly key: string;
  readonly process: InitializedProcess;
  readonly timer: TimeLimit;
}

/**
 * Finds a process for each session. By default a session starts with a fresh process, and waits for no other session. Only
 * a client that opens a session for each call gets the process of its last session, which is kept for it
 * (docs/decisions/0164). With `share: user` or `all`, sessions use a process at the same time.
 */
export class KeptProcesses implements ProcessSource {
  readonly #options: KeptProcessesOptions;
  /** Processes without a session, the one that was left last at the end. */
  #kept: KeptProcess[] = [];
  /** The sessions that use a process, by key, the newest last. */
  readonly #holders = new Map<string, Map<ProcessHolder, InitializedProcess>>();
  /** Sessions whose process a newer session took, with their key, the oldest first. */
  readonly #superseded = new Map<ProcessHolder, string>();
  readonly #perCall = new SessionPerCall();
  /** Kept processes that are checked for a session, by the key of the session. */
  readonly #checks = new Map<string, Promise<void>>();
  /** Kept processes in a row that did not answer a ping. */
  #unanswered = 0;
  #hasReportedPing = false;
  /** How often the kept processes were ended. A process that was checked meanwhile ends, too. */
  #clears = 0;
  readonly #ending = new Set<Promise<void>>();
  /** All processes that were started here and have not ended. */
  readonly running: RunningProcesses;
  #isClosed = false;

  constructor(options: KeptProcessesOptions) {
    this.#options = options;
    this.running = new RunningProcesses({
      hasAffinity: options.affinity !== undefined,
      ownerOf: (principal) => this.#ownerOf(principal),
      startTimeoutMs: options.startTimeoutMs,
      onOnlyProcess: () => options.onOnlyProcess?.(),
    });
  }

  /**
   * Opens a backend. A session whose holder is known may get a kept process, or leave its own to another session. A
   * session of modern clients shares a process only if no second one can run.
   */
  readonly open: OpenBackend = (events, opening) => {
    const holder = opening?.holder ?? (opening?.isGroup === true ? new GroupHolder() : undefined);
    if (opening === undefined || holder === undefined) return this.#options.open(events, opening);
    if (!this.#isClosed && opening.resume === undefined && this.#options.reuse() !== 'none')
      return new ReusableBackend(this, events, { ...opening, holder });
    holder.onStart();
    return this.#options.open(events, opening);
  };

  /** The number of processes without a session. */
  get size(): number {
    return this.#kept.length;
  }

  /** The sessions with the same key may use each other's processes. */
  keyOf({ principal, affinity: mark, isGroup }: OpenOptions, initialize: Message): ProcessKey {
    const { affinity, sharedBy } = this.#options;
    const owner = this.#ownerOf(principal);
    if (isGroup === true) return { ...processKeyOf(owner, initialize, true, ownPlace), unused: undefined };
    const place = affinity?.placeOfSession(principal, initialize, mark);
    return processKeyOf(owner, initialize, sharedBy === 'all', place);
  }

  /**
   * Names the sessions that belong to one instance, because they may use each other's processes; undefined if a session
   * may be anywhere. Where only `_meta` names the state, all sessions of the user belong together.
   */
  homeOf(principal: Principal, initialize: Message): readonly string[] | undefined {
    const { affinity, reuse } = this.#options;
    if (affinity === undefined || reuse() === 'none') return undefined;
    const place = affinity.placeOfSession(principal, initialize, undefined);
    if (place.kind === 'own' && !affinity.readsMeta) return undefined;
    const { issuer = '', subject = '', client = '' } = this.#ownerOf(principal) ?? {};
    return [issuer, subject, client, affinity.readsMeta || place.kind !== 'named' ? '' : place.mark];
  }

  /** Starts a process for a session. */
  start({ asksClients }: ProcessKey, opening: OpenOptions): InitializedProcess {
    const { open, cancelGraceMs = 0, onDropped } = this.#options;
    const owner = this.#ownerOf(opening.principal);
    const ownsTasks = opening.principal !== undefined && !isSameUser(opening.principal, anonymous);
    return this.running.start((listeners) => {
      const options = { owner, asksClients, cancelGraceMs, ownsTasks, onDropped, ...listeners };
      return new InitializedProcess((events) => open(events, opening), options);
    });
  }

  /** See `ProcessSource.noteSession`. */
  noteSession({ text }: ProcessKey, holder: ProcessHolder, initialize: Message): boolean {
    return this.#options.sharedBy !== 'all' && this.#perCall.noteSession(text, holder, initialize);
  }

  /** True if a session may get a process without a start. */
  mayHave(seeker: ReusableBackend): boolean {
    const { key, isPerCall } = seeker;
    const { text, unused } = key;
    if (this.running.isOnlyOne && this.running.findOther(seeker.principal) !== undefined) return true;
    if (this.#unanswered >= maxUnanswered) return false;
    if (this.#options.sharedBy !== 'all' && !isPerCall) return false;
    if (this.#holders.has(text) || this.#checks.has(text)) return true;
    return this.#kept.some(({ key }) => key === text || key === unused);
  }

  /** See `ProcessSource.find`. */
  async find(seeker: ReusableBackend): Promise<InitializedProcess | undefined> {
    const { key } = seeker;
    while (seeker.isSeeking) {
      if (this.running.isOnlyOne || seeker.hasFailed) {
        const other = this.running.findOther(seeker.principal);
        if (other === undefined) break;
        if (await this.#canJoin(other)) return other;
        continue;
      }
      const check = this.#checks.get(key.text);
      if (check !== undefined) {
        await check;
        continue;
      }
      if (seeker.isPerCall) this.#supersedeLeft(key.text);
      const kept = this.#takeKept(key);
      if (kept !== undefined) {
        const clears = this.#clears;
        if ((await this.#isReady(key.text, kept)) && clears === this.#clears) return kept;
        this.#close(kept);
        continue;
      }
      const shared = this.#findShared(key);
      if (shared !== undefined) return shared;
      const starting = seeker.isPerCall ? undefined : this.#findStarting(key);
      if (starting === undefined) break;
      await starting.whenStarted();
    }
    if (seeker.isSeeking) seeker.start();
    return undefined;
  }

  /** Waits for a process that is starting or ending. Returns true if a session can use it together with others. */
  async #canJoin(process: InitializedProcess): Promise<boolean> {
    if (!process.isOnlyChoice) await (process.closed ?? process.whenStarted());
    else if (process.size > 0) return true;
    else {
      this.#remove((kept) => kept.process === process);
      if (await process.isReady()) return true;
      this.#close(process);
    }
    return false;
  }

  /** A process without a session. One that was never used serves if there is no process with the key. */
  #takeKept({ text, unused }: ProcessKey): InitializedProcess | undefined {
    const own = this.#remove((each) => each.key === text);
    if (own !== undefined || unused === undefined || this.#holders.has(text)) return own;
    return this.#remove((each) => each.key === unused);
  }

  /** Checks a kept process. Other sessions with the key wait meanwhile, because they can then share the process. */
  async #isReady(key: string, kept: InitializedProcess): Promise<boolean> {
    const checked = new Milestone();
    this.#checks.set(key, checked.passed);
    const isReady = await kept.isReady();
    this.#unanswered = isReady ? 0 : this.#unanswered + 1;
    if (!isReady && !this.#hasReportedPing) this.#options.onPingUnknown?.();
    this.#hasReportedPing ||= !isReady;
    // The session that gets the process holds it before others continue.
    setImmediate(() => {
      this.#checks.delete(key);
      checked.pass();
    });
    return isReady;
  }

  /** A process that the session can use together with others. */
  #findShared({ text: key, asksClients }: ProcessKey): InitializedProcess | undefined {
    const { sharedBy, poolMax = 1 } = this.#options;
    const holders = this.#holders.get(key);
    if (holders === undefined) return undefined;
    // Sessions of one client that accept questions would wait for each other.
    if (sharedBy !== 'all' && asksClients) return undefined;
    const processes = [...new Set(holders.values())];
    const joinable = processes.filter((process) => process.isJoinable);
    if (sharedBy !== 'all') return joinable.at(-1);
    const [quietest] = joinable.toSorted((a, b) => a.openCalls - b.openCalls);
    const mayStart = processes.length < poolMax;
    return mayStart && quietest !== undefined && quietest.openCalls > 0 ? undefined : quietest;
  }

  /** A process whose start other sessions can wait for, because all of them share it. */
  #findStarting({ text: key }: ProcessKey): InitializedProcess | undefined {
    const processes = this.#holders.get(key)?.values() ?? [];
    for (const process of processes) if (process.isStarting) return process;
    return undefined;
  }

  /** Takes the processes of the sessions that their client has left. The newest one is kept, and the others end. */
  #supersedeLeft(key: string): void {
    for (const [holder, process] of this.#holders.get(key) ?? [])
      if (process.size === 1 && process.isReusable && holder.isLeft) this.#supersede(key, holder);
  }

  /** A session uses a process from now on. */
  hold(key: string, holder: ProcessHolder, process: InitializedProcess): void {
    const holders = this.#holders.get(key) ?? new Map<ProcessHolder, InitializedProcess>();
    this.#holders.set(key, holders.set(holder, process));
    this.#superseded.delete(holder);
    if (process.size > 1 && holders.size > maxQuiet && holders.size % quietSlack === 0) this.#expireQuiet(holders);
  }

  /** See `ProcessSource.drop`. */
  drop(key: string, holder: ProcessHolder): number {
    this.#removeHolder(key, holder);
    return this.#perCall.noteLeft(key, holder);
  }

  #removeHolder(key: string, holder: ProcessHolder): void {
    const holders = this.#holders.get(key);
    holders?.delete(holder);
    if (holders?.size === 0) this.#holders.delete(key);
  }

  /** See `ProcessSource.keep`. */
  keep({ text: key, isOwn }: ProcessKey, process: InitializedProcess, isPerCall: boolean, keepMs: number): void {
    const { maxKept, reuse, sharedBy } = this.#options;
    const isWanted = sharedBy === 'all' || isPerCall;
    const lingerMs = isWanted ? this.#options.lingerMs : Math.min(keepMs, this.#options.lingerMs);
    const isUseless = isOwn || lingerMs === 0 || this.#unanswered >= maxUnanswered;
    if (this.#isClosed || isUseless || reuse() === 'none') return this.#close(process);
    // A client that opens a session for each call comes back to the process of its last one only.
    if (sharedBy !== 'all') this.#end(this.#kept.find((kept) => kept.key === key)?.process);
    const { owner } = process.options;
    const ofOwner = this.#kept.filter((kept) => isSameOwner(kept.process.options.owner, owner));
    if (ofOwner.length >= maxKeptOfUser) this.#end(ofOwner[0]?.process);
    if (this.#kept.length >= maxKept) this.#end(this.#kept[0]?.process);
    const timer = new TimeLimit(() => this.#end(process), lingerMs).unref();
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
    this.#clears += 1;
    for (const { process } of [...this.#kept]) this.#end(process);
  }

  #ownerOf(principal: Principal | undefined): Principal | undefined {
    return this.#options.reuse() === 'all' ? undefined : principal;
  }

  /** A session gives its process up. Too many such sessions end, the oldest first. */
  #supersede(key: string, holder: ProcessHolder): void {
    this.#removeHolder(key, holder);
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

  /** Ends the sessions that have been quiet for longest, if there are too many. Others go on in their process. */
  #expireQuiet(holders: ReadonlyMap<ProcessHolder, InitializedProcess>): void {
    const quiet = [...holders]
      .filter(([holder, process]) => process.size > 1 && holder.isLeft)
      .map(([holder]) => ({ holder, quietMs: holder.quietMs }))
      .sort((a, b) => b.quietMs - a.quietMs);
    for (const { holder } of quiet.slice(0, Math.max(0, quiet.length - maxQuiet))) holder.expire();
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
    kept?.timer.clear();
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

/** The place of a process that no other session gets of its own accord. */
const ownPlace: AffinityPlace = { kind: 'own' };
