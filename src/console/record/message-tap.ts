import type { RequestId } from '../../protocol/faults.ts';
import type { Message } from '../../protocol/message/message.ts';
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
  passed(owner: BackendOwner, from: MessageSource, message: Message): void {
    this.#report(owner, from, message.text, ({ open }) => ({
      kind: message.kind,
      ...describeCall(open, from, message),
    }));
  }

  /** Reports a text of the server that is no message. */
  passedNoise(owner: BackendOwner, text: Buffer): void {
    this.#report(owner, 'server', text, () => ({ kind: 'noise' }));
  }

  #report(
    owner: BackendOwner,
    from: MessageSource,
    text: Buffer,
    describe: (session: TappedSession) => Pick<PassedMessage, 'kind' | 'method' | 'ms' | 'isError'>,
  ): void {
    const session = this.#byOwner.get(backendOwnerKey(owner));
    if (session === undefined) return;
    // A fault of the tap must not harm the session.
    contain('admin', () => {
      const showsContent = this.#inspects && [...session.listeners].some((listener) => listener.hasRoom?.() ?? true);
      const message: PassedMessage = {
        at: Date.now(),
        from,
        size: text.length,
        ...(showsContent && { text: redactContent(text) }),
        ...describe(session),
      };
      for (const listener of session.listeners) listener.onMessage(message);
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
  return {
    isError: message.isError,
    ...(request && { method: request.method, ms: Math.round(performance.now() - request.at) }),
  };
}

const requestKey = (from: MessageSource, id: RequestId | null | undefined): string => `${from} ${typeof id} ${id}`;
