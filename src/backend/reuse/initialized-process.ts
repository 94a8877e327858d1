import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { scalarAt } from '../../protocol/json/splice.ts';
import { createMessage, type Message } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import type { Backend, BackendEnd, BackendEvents, RequestIds } from '../backend.ts';

/** The longest wait for the answer that shows that a kept process still works. */
const maxPingMs = 2_000;

/** JSON-RPC: the method does not exist. The answer to a request of a server that has no client. */
const methodNotFound = -32601;

/**
 * A process that one session after another uses. It knows what a session leaves behind: open requests of both sides
 * and resource subscriptions. Between two sessions it has no receiver, and no message of one session reaches the next.
 */
export class InitializedProcess implements BackendEvents {
  /** The user whose sessions may use the process; undefined for all users. */
  readonly owner: Principal | undefined;
  readonly #backend: Backend;
  /** The answer to `initialize`; undefined before. */
  #answer: Buffer | undefined;
  #initializeId: RequestId | undefined;
  #receiver: BackendEvents | undefined;
  #hasInitialized = false;
  #hasEnded = false;
  /** True once the server has not accepted a message of its session. */
  #isStuck = false;
  /** Requests of the session that the server has not answered, with the URI of a subscription. */
  readonly #pending = new Map<RequestId, Subscription | undefined>();
  /** Requests of the server that the session has not answered. */
  readonly #serverRequests = new Set<RequestId>();
  readonly #subscribed = new Set<string>();
  #ping: { readonly id: string; onAnswer(): void } | undefined;
  #lastId = 0;
  /** Called when the process ends by itself while no session uses it. */
  onUnusedEnd: (() => void) | undefined;

  /** @param open opens the backend, with these events */
  constructor(open: (events: BackendEvents) => Backend, receiver: BackendEvents, owner: Principal | undefined) {
    this.owner = owner;
    this.#receiver = receiver;
    this.#backend = open(this);
  }

  get pid(): number | undefined {
    return this.#backend.pid;
  }

  /** The server's answer to the first `initialize`; undefined before, or if the server refused it. */
  get answer(): Buffer | undefined {
    return this.#answer;
  }

  /** True if a session can hand the process over: nothing of the session is under way. */
  get isReusable(): boolean {
    const isOpen = this.#pending.size > 0 || this.#serverRequests.size > 0;
    return this.#answer !== undefined && this.#hasInitialized && !this.#hasEnded && !this.#isStuck && !isOpen;
  }

  /** As `Backend.send`. The server gets `notifications/initialized` only once. */
  send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const { kind, id, method } = message;
    if (method === 'notifications/initialized') {
      if (this.#hasInitialized) return this.#hasEnded ? 'ended' : 'sent';
      this.#hasInitialized = true;
    }
    if (method === 'initialize') this.#initializeId = id ?? undefined;
    if (kind === 'request' && id !== undefined && id !== null) this.#pending.set(id, readSubscription(message));
    if (kind === 'response' && id !== undefined && id !== null) this.#serverRequests.delete(id);
    const sent = this.#backend.send(message, headers);
    // The server does not read: its process does not serve another session.
    if (sent !== 'sent') this.#isStuck = true;
    return sent;
  }

  pause(): void {
    this.#backend.pause();
  }

  resume(): void {
    this.#backend.resume();
  }

  close(how?: Parameters<Backend['close']>[0]): Promise<void> {
    return this.#backend.close(how);
  }

  /** The session leaves the process. Its subscriptions end, and later output of the server goes to nobody. */
  leave(): void {
    this.#receiver = undefined;
    this.#backend.resume();
    for (const uri of this.#subscribed)
      this.#backend.send(createMessage({ id: this.#newId(), method: 'resources/unsubscribe', params: { uri } }));
    this.#subscribed.clear();
  }

  /**
   * Waits until the server has written everything that belongs to the session before, and shows that it works.
   * @returns false if the server does not answer in time, or has ended
   */
  async isReady(): Promise<boolean> {
    if (this.#hasEnded) return false;
    const id = this.#newId();
    return await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), maxPingMs);
      const onAnswer = (): void => {
        clearTimeout(timer);
        resolve(!this.#hasEnded);
      };
      this.#ping = { id, onAnswer };
      if (this.#backend.send(createMessage({ id, method: 'ping' })) === 'sent') return;
      clearTimeout(timer);
      resolve(false);
    });
  }

  /** Hands the process to a session. Returns false if the process has ended. */
  take(receiver: BackendEvents): boolean {
    if (!this.#hasEnded) this.#receiver = receiver;
    return !this.#hasEnded;
  }

  #newId(): string {
    this.#lastId += 1;
    return `mcp-gangway-kept-${this.#lastId}`;
  }

  onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    for (const message of messages) this.#note(message);
    if (this.#receiver !== undefined) this.#receiver.onMessages(messages, relatedRequests);
    else for (const message of messages) this.#receiveUnused(message);
  }

  onNoise(text: Buffer): void {
    this.#receiver?.onNoise(text);
  }

  onUnanswered(...args: Parameters<BackendEvents['onUnanswered']>): void {
    for (const id of args[0]) this.#pending.delete(id);
    this.#receiver?.onUnanswered(...args);
  }

  onState(state: string): void {
    this.#receiver?.onState?.(state);
  }

  onEnd(end: BackendEnd): void {
    this.#hasEnded = true;
    this.#ping?.onAnswer();
    if (this.#receiver === undefined) this.onUnusedEnd?.();
    else this.#receiver.onEnd(end);
  }

  #note({ kind, id, text, isError, cancels }: Message): void {
    if (cancels !== undefined) this.#serverRequests.delete(cancels);
    if (id === undefined || id === null) return;
    if (kind === 'request') {
      if (this.#receiver !== undefined) this.#serverRequests.add(id);
      return;
    }
    const subscription = this.#pending.get(id);
    if (!this.#pending.delete(id) || isError) return;
    if (subscription?.isEnd === true) this.#subscribed.delete(subscription.uri);
    else if (subscription !== undefined) this.#subscribed.add(subscription.uri);
    if (id === this.#initializeId) {
      this.#initializeId = undefined;
      this.#answer = Buffer.from(text);
    }
  }

  /**
   * Output between two sessions goes to nobody: the next session asks for all lists itself. The server must not wait
   * for an answer.
   */
  #receiveUnused(message: Message): void {
    const { kind, id, method } = message;
    if (kind === 'response' && id !== undefined && id === this.#ping?.id) {
      const { onAnswer } = this.#ping;
      this.#ping = undefined;
      onAnswer();
    } else if (kind === 'request') {
      const refusal = { error: { code: methodNotFound, message: 'No client is connected.' } };
      this.#backend.send(createMessage({ id, ...(method === 'ping' ? { result: {} } : refusal) }));
    }
  }
}

/** The start or the end of a resource subscription. */
interface Subscription {
  readonly uri: string;
  readonly isEnd: boolean;
}

function readSubscription({ method, text }: Message): Subscription | undefined {
  if (method !== 'resources/subscribe' && method !== 'resources/unsubscribe') return undefined;
  const uri = scalarAt(text, ['params', 'uri']);
  return typeof uri === 'string' ? { uri, isEnd: method === 'resources/unsubscribe' } : undefined;
}
