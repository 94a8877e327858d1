import { spliceId } from '../../protocol/json/splice.ts';
import { type Message, readGatewayMessage } from '../../protocol/message/message.ts';
import { detach } from '../../util/boundary.ts';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  type OpenOptions,
  type ProcessHolder,
  type RequestIds,
} from '../backend.ts';
import type { InitializedProcess } from './initialized-process.ts';

/** How many messages wait while a kept process is taken (P8). Only `initialize` is sent before its answer. */
const maxWaiting = 64;

/** Finds the processes of `ReusableBackend`. `KeptProcesses` implements it. */
export interface ProcessSource {
  /** The sessions with the same key may use each other's processes. */
  keyOf(principal: OpenOptions['principal'], initialize: Message): string;
  /** True if a session with this key may get a process without a start. */
  mayHave(key: string): boolean;
  /**
   * Takes a process that was left by the last session with this key, or that a session with this key can spare.
   * @returns undefined if there is none
   */
  take(key: string): Promise<InitializedProcess | undefined>;
  /** Starts a process for a session. */
  start(events: BackendEvents, opening: OpenOptions): InitializedProcess;
  /** A session uses a process from now on. */
  hold(key: string, holder: ProcessHolder, process: InitializedProcess): void;
  /** A session uses its process no more. */
  drop(key: string, holder: ProcessHolder): void;
  /** Keeps a process that its session has left, or ends it if there is no room. */
  keep(key: string, process: InitializedProcess): void;
}

/**
 * The backend of one session. Its `initialize` decides the process: a kept one, which is not initialized again, or a
 * new one.
 */
export class ReusableBackend implements Backend, BackendEvents {
  readonly #kept: ProcessSource;
  readonly #events: BackendEvents;
  readonly #opening: OpenOptions & { readonly holder: ProcessHolder };
  #key: string | undefined;
  #process: InitializedProcess | undefined;
  #waiting: Parameters<Backend['send']>[] = [];
  #isPaused = false;
  #isClosed = false;
  #hasEnded = false;

  constructor(kept: ProcessSource, events: BackendEvents, opening: OpenOptions & { readonly holder: ProcessHolder }) {
    this.#kept = kept;
    this.#events = events;
    this.#opening = opening;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  send(...sent: Parameters<Backend['send']>): ReturnType<Backend['send']> {
    if (this.#isClosed || this.#hasEnded) return 'ended';
    if (this.#process !== undefined) return this.#process.send(...sent);
    if (this.#waiting.length >= maxWaiting) return 'full';
    this.#waiting.push(sent);
    if (this.#key === undefined) this.#begin(sent[0]);
    return 'sent';
  }

  pause(): void {
    this.#isPaused = true;
    this.#process?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#process?.resume();
  }

  async close(how: Parameters<Backend['close']>[0] = {}): Promise<void> {
    if (this.#isClosed) return this.#process?.close(how);
    this.#isClosed = true;
    const { holder } = this.#opening;
    const process = this.#process;
    const key = this.#key ?? '';
    this.#kept.drop(key, holder);
    if (how.mayBeKept === true && process?.isReusable === true) {
      this.#process = undefined;
      this.#kept.keep(key, process);
      this.#end();
      return;
    }
    if (process === undefined) this.#end();
    await process?.close(how);
  }

  #begin(initialize: Message): void {
    const { principal } = this.#opening;
    this.#key = this.#kept.keyOf(principal, initialize);
    if (initialize.method !== 'initialize' || !this.#kept.mayHave(this.#key)) return this.#start();
    const report = (): void => this.#start();
    detach('backend', this.#take(this.#key, initialize), report);
  }

  async #take(key: string, initialize: Message): Promise<void> {
    const process = await this.#kept.take(key);
    if (process === undefined) {
      if (!this.#isClosed) this.#start();
      return;
    }
    if (this.#isClosed) return this.#kept.keep(key, process);
    if (process.answer === undefined || !process.take(this)) return this.#start();
    this.#use(process);
    this.#waiting.shift();
    this.#events.onMessages([readGatewayMessage(spliceId(process.answer, JSON.stringify(initialize.id)))]);
    this.#sendWaiting();
  }

  #start(): void {
    this.#opening.holder.onStart();
    this.#use(this.#kept.start(this, this.#opening));
    this.#sendWaiting();
  }

  #use(process: InitializedProcess): void {
    this.#process = process;
    this.#kept.hold(this.#key ?? '', this.#opening.holder, process);
    if (this.#isPaused) process.pause();
  }

  #sendWaiting(): void {
    for (const sent of this.#waiting.splice(0)) this.#process?.send(...sent);
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    this.#events.onMessages(messages, relatedRequests);
  }

  onNoise(text: Buffer): void {
    this.#events.onNoise(text);
  }

  onUnanswered(...args: Parameters<BackendEvents['onUnanswered']>): void {
    this.#events.onUnanswered(...args);
  }

  onState(state: string): void {
    this.#events.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    this.#hasEnded = true;
    this.#kept.drop(this.#key ?? '', this.#opening.holder);
    this.#events.onEnd(end);
  }

  /** The session has left the process. The end is reported outside of this call. */
  #end(): void {
    queueMicrotask(() => this.#events.onEnd(closedByGateway));
  }
}
