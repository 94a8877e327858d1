import type { RequestId } from '../../protocol/faults.ts';
import { type Message, memberRange, readBody } from '../../protocol/message/message.ts';
import { contain } from '../../util/boundary.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import { type BackendOwner, backendOwnerKey } from './backend-owner.ts';
import { redactContent } from './redacted-content.ts';

/** The sender of a message. */
export type MessageSource = 'client' | 'server';

/** A message in the form that the page shows. */
export interface PassedMessage {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly from: MessageSource;
  readonly kind: Message['kind'] | 'noise';
  /** The method; of a response, the method of its request if the tap has seen that. */
  readonly method?: string | undefined;
  /** In bytes. */
  readonly size: number;
  /** The time from the request to this response, if the tap has seen the request. */
  readonly ms?: number | undefined;
  readonly isError?: boolean;
  /** The content, if the operator allows it. */
  readonly text?: string;
}

/** A listener to the messages of one session. */
export interface MessageTapListener {
  readonly owner: BackendOwner;
  onMessage(message: PassedMessage): void;
  /** False while further messages are only counted, so their contents need not be read. */
  hasRoom?(): boolean;
}

/** The limit for remembered unanswered requests of a watched session (P8). */
const maxOpen = 1_000;

/** A peer chooses the method, so its length is limited. */
const maxMethodLength = 128;

/** A longer message is not parsed, so that it does not block this process. The page shows its size. */
const maxReadBytes = 1024 * 1024;

interface TappedSession {
  readonly listeners: Set<MessageTapListener>;
  /** The unanswered requests, by sender and id. */
  readonly open: BoundedMap<string, { readonly method: string; readonly at: number }>;
}

/**
 * Taps the messages of sessions for pages that show one of them. Nothing is stored, and nothing is done for a session
 * that no page shows. Callers check `isWatched` before `passed`, which keeps the usual case free.
 */
export class MessageTap {
  /** True while a page shows any session. */
  isWatched = false;
  readonly #inspects: boolean;
  readonly #byOwner = new Map<string, TappedSession>();

  /** @param inspects true if the page shows the contents of messages */
  constructor(inspects: boolean) {
    this.#inspects = inspects;
  }

  /** Adds a listener to the messages of a session. Returns a function that removes the listener. */
  watch(listener: MessageTapListener): () => void {
    const key = backendOwnerKey(listener.owner);
    const session = this.#byOwner.get(key) ?? { listeners: new Set(), open: new BoundedMap(maxOpen) };
    session.listeners.add(listener);
    this.#byOwner.set(key, session);
    this.isWatched = true;
    return () => {
      session.listeners.delete(listener);
      if (session.listeners.size === 0) this.#byOwner.delete(key);
      this.isWatched = this.#byOwner.size > 0;
    };
  }

  /** Reports a message that passes a backend. */
  passed(owner: BackendOwner, from: MessageSource, text: Uint8Array): void {
    const session = this.#byOwner.get(backendOwnerKey(owner));
    if (session === undefined) return;
    // A fault of the tap must not harm the session.
    contain('admin', () => this.#report(session, from, text));
  }

  #report(session: TappedSession, from: MessageSource, text: Uint8Array): void {
    const showsContent = [...session.listeners].some((listener) => listener.hasRoom?.() ?? true);
    for (const message of this.#describe(session, from, text, showsContent))
      for (const listener of session.listeners) listener.onMessage(message);
  }

  #describe({ open }: TappedSession, from: MessageSource, bytes: Uint8Array, showsContent: boolean): PassedMessage[] {
    const common = { at: Date.now(), from, ...(this.#inspects && showsContent && { text: redactContent(bytes) }) };
    const noise: PassedMessage = { ...common, kind: 'noise', size: bytes.length };
    if (bytes.length > maxReadBytes) return [noise];
    const body = readBody(Buffer.from(bytes), Number.POSITIVE_INFINITY);
    if (!body.ok) return [noise];
    return body.messages.map((read) => {
      if (!read.ok) return noise;
      const { message } = read;
      return { ...common, kind: message.kind, size: message.text.length, ...describeCall(open, from, message) };
    });
  }
}

/** Returns the method of a message, and the response time if the message is a response. */
function describeCall(
  open: TappedSession['open'],
  from: MessageSource,
  message: Message,
): Pick<PassedMessage, 'method' | 'ms' | 'isError'> {
  const method = message.method?.slice(0, maxMethodLength);
  if (message.kind === 'notification') return { method };
  if (message.kind === 'request') {
    open.set(requestKey(from, message.id), { method: method ?? '', at: performance.now() });
    return { method };
  }
  const key = requestKey(from === 'client' ? 'server' : 'client', message.id);
  const request = open.get(key);
  open.delete(key);
  const isError = memberRange(message, 'message', 'error') !== undefined;
  return { isError, ...(request && { method: request.method, ms: Math.round(performance.now() - request.at) }) };
}

const requestKey = (from: MessageSource, id: RequestId | null | undefined): string => `${from} ${typeof id} ${id}`;
