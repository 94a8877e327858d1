import type { ModernCallAnswer } from '../../call/modern-answer.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { LogLevel } from '../../protocol/modern/log-levels.ts';
import type { TaskRequester } from './task-owners.ts';

/** Where a request comes from. */
export interface RequestOrigin {
  /** Of the client's request that brought it, for the server. */
  readonly headers?: ForwardedHeaders | undefined;
  /** Who sends it; absent where users are not told apart. */
  readonly asker?: TaskRequester | undefined;
  /** It is of a session of the legacy era, which is served until it ends. */
  readonly isOfSession?: boolean;
  /** No client waits for it: the gateway asks whether the server is well, or listens for other instances. */
  readonly isOfProbe?: boolean;
}

/**
 * To be called when the client of a request does not wait any more.
 * @param reason as the client gave it, for the server
 */
export type CancelRequest = (reason?: string) => void;

/** A request in flight at a server that all clients share. */
export interface SharedCall {
  /** What the server knows the request by: its id there, and its progress token. Never used twice. */
  readonly number: number;
  readonly method: string;
  /** The id and the progress token as the client wrote them. */
  readonly idText: string;
  readonly tokenText: string | undefined;
  /** The least level of the log messages that the client wants; undefined if it wants none. */
  readonly logLevel: LogLevel | undefined;
  /** It is a subscription: it stays open, and is sent again to a process that replaces its own. */
  readonly isListen: boolean;
  readonly answer: ModernCallAnswer;
  /** Of its client, for the server; they go with this request and no other. */
  readonly headers: ForwardedHeaders;
  /** Of a subscription, or a request that may begin a task, where users are told apart: whose it is. */
  readonly asker: TaskRequester | undefined;
  /** See `Origin`. */
  readonly isOfSession: boolean;
  readonly isOfProbe: boolean;
  /** The request as the server gets it, as long as it may have to be sent. */
  text: Buffer | undefined;
  /** The process that runs has it. */
  isSent: boolean;
  /** Of a subscription: its client has the acknowledgement. */
  isAcknowledged: boolean;
  /** A process was lost that had it, or the connection that it was asked on. */
  isRerun: boolean;
  /** The newest progress that the client was told. */
  lastProgress: number;
  /** When it came or last reported progress, and when it came, on the monotonic clock in milliseconds. */
  activeAt: number;
  readonly startedAt: number;
}

/** What is known of a call before it is sent. */
type Asked = Pick<
  SharedCall,
  | 'number'
  | 'method'
  | 'idText'
  | 'tokenText'
  | 'logLevel'
  | 'isListen'
  | 'answer'
  | 'headers'
  | 'asker'
  | 'isOfSession'
  | 'isOfProbe'
  | 'text'
>;

/** A call that was not sent yet. Member by member, since it is made for each request and copies of objects cost more. */
export function createSharedCall(asked: Asked): SharedCall {
  const now = performance.now();
  return {
    number: asked.number,
    method: asked.method,
    idText: asked.idText,
    tokenText: asked.tokenText,
    logLevel: asked.logLevel,
    isListen: asked.isListen,
    answer: asked.answer,
    headers: asked.headers,
    asker: asked.asker,
    isOfSession: asked.isOfSession,
    isOfProbe: asked.isOfProbe,
    text: asked.text,
    isSent: false,
    isAcknowledged: false,
    isRerun: false,
    lastProgress: Number.NEGATIVE_INFINITY,
    activeAt: now,
    startedAt: now,
  };
}

/** A cancelled call. */
interface Retired {
  readonly call: SharedCall;
  /** The newest call that there was when it was cancelled. */
  readonly newest: number;
  readonly timer: NodeJS.Timeout;
}

/** The requests in flight at one server, in the order in which they came. */
export class SharedCalls {
  readonly #byNumber = new Map<number, SharedCall>();
  /** Those that a log message can belong to, cancelled ones among them. */
  readonly #loggable = new Set<SharedCall>();
  /** All but subscriptions. */
  readonly #requests = new Set<SharedCall>();
  /** Cancelled calls of which the server may still say something, by number. */
  readonly #retired = new Map<number, Retired>();
  #newest = 0;
  /** A cancelled call of which the server may still say something that names no request: the newest that there was then. */
  #doubt: { readonly newest: number; readonly untilMs: number } | undefined;
  #heldBytes = 0;
  #waiting: (() => void)[] = [];

  /** True if there are some, and no client waits for any of them. */
  get areOfProbes(): boolean {
    const all = this.all();
    return all.length > 0 && all.every(({ isOfProbe }) => isOfProbe);
  }

  get size(): number {
    return this.#byNumber.size;
  }

  /** The bytes of the requests that may still have to be sent. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  add(call: SharedCall): void {
    this.#byNumber.set(call.number, call);
    this.#newest = call.number;
    if (!call.isListen) this.#requests.add(call);
    if (call.logLevel !== undefined && !call.isListen) this.#loggable.add(call);
    this.#heldBytes += call.text?.length ?? 0;
  }

  get(number: unknown): SharedCall | undefined {
    return this.#byNumber.get(number as number);
  }

  /** True if the call is still in flight. */
  has(call: SharedCall): boolean {
    return this.#byNumber.get(call.number) === call;
  }

  /** Takes a call out: what the server still says of it belongs to nobody. */
  remove(call: SharedCall): void {
    if (!this.#byNumber.delete(call.number)) return;
    this.#loggable.delete(call);
    this.#requests.delete(call);
    this.forgetText(call);
    if (this.#byNumber.size === 0) for (const tell of this.#waiting.splice(0)) tell();
  }

  /**
   * Takes a cancelled call out. A server learns of that later: what it logs meanwhile may be of this call, and must not
   * reach the client of another one.
   * @param graceMs how long, unless an answer shows before that the server has heard of it
   */
  retire(call: SharedCall, graceMs: number): void {
    const mayLog = call.isSent && this.#loggable.has(call);
    const maySpeak = call.isSent && !call.isListen;
    if (maySpeak) this.#doubt = { newest: this.#newest, untilMs: performance.now() + graceMs };
    this.remove(call);
    if (!mayLog) return;
    this.#loggable.add(call);
    const timer = setTimeout(() => this.#settle(call.number), graceMs);
    this.#retired.set(call.number, { call, newest: this.#newest, timer });
  }

  /**
   * The server has answered a request: nothing more comes of that one, nor of those that were cancelled before it was sent,
   * since the server reads in order.
   */
  answered(number: unknown): void {
    if (this.#doubt !== undefined && this.#doubt.newest < (number as number)) this.#doubt = undefined;
    for (const { call, newest } of [...this.#retired.values()]) {
      if (call.number === number || newest < (number as number)) this.#settle(call.number);
    }
  }

  /** The process is gone, and with it all that it could have said of cancelled calls. */
  settleAll(): void {
    this.#doubt = undefined;
    for (const number of [...this.#retired.keys()]) this.#settle(number);
  }

  #settle(number: number): void {
    const retired = this.#retired.get(number);
    if (retired === undefined) return;
    clearTimeout(retired.timer);
    this.#retired.delete(number);
    this.#loggable.delete(retired.call);
  }

  /** The text of the call is not needed any more. */
  forgetText(call: SharedCall): void {
    this.#heldBytes -= call.text?.length ?? 0;
    call.text = undefined;
  }

  all(): SharedCall[] {
    return [...this.#byNumber.values()];
  }

  /** The only request that a log message can belong to: it asked for them, and no other did. */
  get onlyLoggable(): SharedCall | undefined {
    const [first] = this.#loggable;
    return this.#loggable.size === 1 && first !== undefined && this.has(first) ? first : undefined;
  }

  /** The only request that the server can speak of, beside subscriptions. */
  get only(): SharedCall | undefined {
    const [first] = this.#requests;
    const isInDoubt = this.#doubt !== undefined && performance.now() < this.#doubt.untilMs;
    return this.#requests.size === 1 && first?.isSent === true && !isInDoubt ? first : undefined;
  }

  /** Resolves when none is in flight. */
  whenEmpty(): Promise<void> {
    if (this.#byNumber.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
