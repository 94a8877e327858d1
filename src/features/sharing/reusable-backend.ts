import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  type OpenOptions,
  type ProcessHolder,
  type RequestIds,
  type Sent,
} from '../../core/backend/backend.ts';
import { WaitingList } from '../../core/backend/waiting-budget.ts';
import { forRequestedRevision } from '../../core/protocol/handshake.ts';
import { spliceId } from '../../core/protocol/json.ts';
import { type Message, readGatewayMessage, responsesIn } from '../../core/protocol/message/message.ts';
import type { Principal } from '../../core/protocol/principal.ts';
import { detach } from '../../core/util/boundary.ts';
import { TimeLimit } from '../../core/util/timing/time-limit.ts';
import type { InitializedProcess } from './initialized-process.ts';
import type { ProcessKey } from './process-key.ts';
import type { RunningProcesses } from './running-processes.ts';
import type { Seat } from './seat.ts';

/**
 * How many messages wait while a process is found (P8). Their bytes have a limit, too. Only `initialize` is sent before its
 * answer.
 */
const maxWaiting = 64;

/** So many processes may fail to open a session, if others of the server run. */
const maxFailures = 3;

/** Finds the processes of `ReusableBackend`. `KeptProcesses` implements it. */
export interface ProcessSource {
  /** The processes that run, and whether only one of the server can. */
  readonly running: RunningProcesses;
  /** The sessions with the same key may use each other's processes. */
  keyOf(opening: OpenOptions, initialize: Message): ProcessKey;
  /** A session with this key looks for a process. Returns true if its client opens a session for each call. */
  noteSession(key: ProcessKey, holder: ProcessHolder, initialize: Message): boolean;
  /** True if a session with this key may get a process without a start. */
  mayHave(seeker: ReusableBackend): boolean;
  /**
   * Finds a process that the last session with this key has left, or that it shares. Without such a process, the seeker
   * starts one.
   * @returns undefined if there is none
   */
  find(seeker: ReusableBackend): Promise<InitializedProcess | undefined>;
  /** Starts a process for a session. */
  start(key: ProcessKey, opening: OpenOptions): InitializedProcess;
  /** A session uses a process from now on. */
  hold(key: string, holder: ProcessHolder, process: InitializedProcess): void;
  /** A session uses its process no more. Returns how long the process may be wanted; see `SessionPerCall.noteLeft`. */
  drop(key: string, holder: ProcessHolder): number;
  /** Keeps a process that its last session has left, or ends it if nobody may come for it, or if there is no room. */
  keep(key: ProcessKey, process: InitializedProcess, isPerCall: boolean, keepMs: number): void;
}

/**
 * The backend of one session. Its `initialize` decides the process: one that is initialized already, or a new one.
 */
export class ReusableBackend implements Backend, BackendEvents {
  readonly #source: ProcessSource;
  readonly #events: BackendEvents;
  readonly #opening: OpenOptions & { readonly holder: ProcessHolder };
  #key: ProcessKey | undefined;
  #process: InitializedProcess | undefined;
  #seat: Seat | undefined;
  readonly #waiting = new WaitingList<Parameters<Backend['send']>>(([{ text }]) => text.length);
  #isPaused = false;
  #isClosed = false;
  #hasEnded = false;
  /** True if the client opens a session for each call. */
  isPerCall = false;
  /** The client's `initialize`, until the server has answered it. */
  #initialize: Parameters<Backend['send']> | undefined;
  #silence: TimeLimit | undefined;
  /** How many processes have failed to open the session. */
  #failures = 0;

  constructor(source: ProcessSource, events: BackendEvents, opening: OpenOptions & { readonly holder: ProcessHolder }) {
    this.#source = source;
    this.#events = events;
    this.#opening = opening;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get key(): ProcessKey {
    if (this.#key === undefined) throw new Error('the session has sent nothing');
    return this.#key;
  }

  get principal(): Principal | undefined {
    return this.#opening.principal;
  }

  /** True if a process that was started for the session has failed to open it. */
  get hasFailed(): boolean {
    return this.#failures > 0;
  }

  /** False once the session needs no process any more. */
  get isSeeking(): boolean {
    return !this.#isClosed && this.#seat === undefined;
  }

  send(...sent: Parameters<Backend['send']>): Sent {
    if (this.#isClosed || this.#hasEnded) return 'ended';
    if (this.#process !== undefined && this.#seat !== undefined) return this.#process.send(this.#seat, ...sent);
    if (this.#waiting.length >= maxWaiting || !this.#waiting.hasRoomFor(sent[0].text.length)) return 'full';
    this.#waiting.push(sent);
    if (this.#key === undefined) this.#begin(sent);
    return 'sent';
  }

  pause(): void {
    this.#isPaused = true;
    this.#seat?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#seat?.resume();
  }

  async close(how: Parameters<Backend['close']>[0] = {}): Promise<void> {
    const process = this.#process;
    if (this.#isClosed || this.#hasEnded) return process?.close(how);
    this.#isClosed = true;
    this.#silence?.clear();
    const key = this.#key;
    const keepMs = this.#source.drop(key?.text ?? '', this.#opening.holder);
    const isOthers = (process?.size ?? 0) > 1;
    const isKept = how.mayBeKept === true && process?.isReusable === true && key?.isOwn === false;
    if (process !== undefined && !isOthers && !isKept) return await process.close(how);
    this.#process = undefined;
    this.#seat?.leave();
    if (process !== undefined && key !== undefined && !isOthers)
      this.#source.keep(key, process, this.isPerCall, keepMs);
    this.#end();
  }

  #begin(sent: Parameters<Backend['send']>): void {
    const [initialize] = sent;
    this.#key = this.#source.keyOf(this.#opening, initialize);
    if (initialize.method !== 'initialize') return this.start();
    this.#initialize = sent;
    this.isPerCall = this.#source.noteSession(this.#key, this.#opening.holder, initialize);
    if (this.#source.mayHave(this)) this.#seek(initialize);
    else this.start();
  }

  #seek(initialize: Message): void {
    detach('backend', this.#find(initialize), () => {
      if (this.isSeeking) this.start();
    });
  }

  /**
   * Looks for another process, because the new one has not opened the session. Of some servers only one process can run:
   * it holds a port, a lock or a database. Returns false if there is no other process.
   */
  #seekAgain(): boolean {
    const initialize = this.#initialize;
    const process = this.#process;
    const mayTry = this.#failures < maxFailures && !this.#isClosed;
    if (!mayTry || initialize === undefined || process === undefined) return false;
    if (this.#source.running.findOther(this.principal, process) === undefined) return false;
    this.#failures += 1;
    this.#silence?.clear();
    this.#source.drop(this.key.text, this.#opening.holder);
    this.#seat?.leave();
    if (!process.hasEnded) detach('backend', process.close());
    this.#seat = undefined;
    this.#process = undefined;
    this.#waiting.unshift(initialize);
    this.#seek(initialize[0]);
    return true;
  }

  /** The server has opened the session. */
  #noteOpened(): void {
    this.#silence?.clear();
    this.#initialize = undefined;
    if (this.hasFailed) this.#source.running.noteOnlyProcess();
  }

  async #find(initialize: Message): Promise<void> {
    const process = await this.#source.find(this);
    if (process === undefined) return;
    if (!this.isSeeking) {
      if (process.size === 0) this.#source.keep(this.key, process, this.isPerCall, 0);
      return;
    }
    const { answer } = process;
    if (answer === undefined || !this.#use(process)) return this.start();
    this.#waiting.shift();
    this.#noteOpened();
    this.#events.onMessages([readGatewayMessage(answerTo(initialize, answer))]);
    this.#sendWaiting();
  }

  /** There is no process for the session: starts one, within this call. */
  start(): void {
    if (this.#initialize !== undefined && this.#source.running.isTaken(this.principal)) {
      queueMicrotask(() => this.onEnd(takenByOther));
      return;
    }
    this.#opening.holder.onStart();
    this.#use(this.#source.start(this.key, this.#opening));
    this.#sendWaiting();
    if (this.#initialize !== undefined) this.#awaitAnswer();
  }

  /** The second process of some servers waits for the first one in silence. */
  #awaitAnswer(): void {
    const process = this.#process;
    const isWaiting = (): boolean =>
      this.#initialize !== undefined && this.#process === process && !this.#isClosed && !this.#hasEnded;
    const check = async (): Promise<void> => {
      if (process === undefined || !isWaiting()) return;
      const isOutlived = await this.#source.running.isOutlived(this.principal, process);
      if (isWaiting() && !(isOutlived && this.#seekAgain())) this.#awaitAnswer();
    };
    this.#silence = new TimeLimit(() => detach('backend', check()), this.#source.running.silenceMs).unref();
  }

  /** Returns false if the process has ended. */
  #use(process: InitializedProcess): boolean {
    const seat = process.join(this, this.#opening.principal);
    if (seat === undefined) return false;
    this.#process = process;
    this.#seat = seat;
    this.#source.hold(this.key.text, this.#opening.holder, process);
    if (this.#isPaused) seat.pause();
    return true;
  }

  #sendWaiting(): void {
    for (const sent of this.#waiting.takeAll()) this.send(...sent);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    const [initialize] = this.#initialize ?? [];
    const answer = initialize && responsesIn(messages).find(({ id }) => id === initialize.id);
    if (answer?.isError === true && this.#seekAgain()) return;
    if (answer !== undefined) this.#noteOpened();
    this.#events.onMessages(messages, relatedRequests);
  }

  onNoise(text: Buffer, more?: number): void {
    this.#events.onNoise(text, more);
  }

  onUnanswered(...args: Parameters<BackendEvents['onUnanswered']>): void {
    this.#events.onUnanswered(...args);
  }

  onState(state: string): void {
    this.#events.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    if (end.reason === 'exited' && this.#seekAgain()) return;
    this.#hasEnded = true;
    this.#silence?.clear();
    // The session alone was detached: the process goes on for others.
    if (this.#process?.hasEnded === false) this.#process = undefined;
    this.#source.drop(this.#key?.text ?? '', this.#opening.holder);
    this.#events.onEnd(end);
  }

  /** The session has left the process. The end is reported outside of this call. */
  #end(): void {
    queueMicrotask(() => this.#events.onEnd(closedByGateway));
  }
}

const takenByOther: BackendEnd = {
  reason: 'exited',
  detail: 'Only one process of the server can run, and another user has it. A second one would end it.',
};

/** The answer of a process to the `initialize` of its first session, for another session. */
const answerTo = (initialize: Message, answer: Buffer): Buffer =>
  forRequestedRevision(initialize.text, spliceId(answer, JSON.stringify(initialize.id)));
