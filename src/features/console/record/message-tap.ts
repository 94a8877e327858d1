import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import { type Message, memberValue } from '../../../core/protocol/message/message.ts';
import { methodOf } from '../../../core/protocol/methods/methods.ts';
import { contain } from '../../../core/util/boundary.ts';
import { BoundedMap } from '../../../core/util/bounded-map.ts';
import { type BackendOwner, backendOwnerKey } from './backend-owner.ts';
import { redactContent } from './redacted-content.ts';

/** The sender of a message. */
export type MessageSource = 'client' | 'server';

/** A message in the form that the page shows. */
export interface PassedMessage {
  /** The messages of a watched session are numbered from 1. */
  readonly number: number;
  /** The number of the request that this response answers, if the tap has seen it. */
  readonly answers?: number;
  /** The number of the same request, which the gateway sends again after the loss of the server. */
  readonly repeats?: number;
  /** The fault with which the gateway has ended a request that the server had not answered. */
  readonly fault?: Reason;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly from: MessageSource;
  readonly kind: Message['kind'] | 'noise' | 'fault';
  /** The method; of a response, the method of its request if the tap has seen that. */
  readonly method?: string | undefined;
  /** The name of the called tool or prompt. The URI of a resource may have contents and is left out. */
  readonly name?: string;
  /** In bytes. */
  readonly size: number;
  /** The time from the request to this response, if the tap has seen the request. */
  readonly ms?: number | undefined;
  /** True for an error response, and for the result of a tool that failed. */
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

/** A peer chooses the method and the name, so their length is limited. */
const maxNameLength = 128;

/** A request that the tap has seen. */
interface OpenRequest {
  readonly number: number;
  readonly method: string;
  readonly at: number;
}

interface TappedSession {
  readonly listeners: Set<MessageTapListener>;
  /** The unanswered requests, by sender and id. */
  readonly open: BoundedMap<string, OpenRequest>;
  /** The number of messages so far. */
  count: number;
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
    const session = this.#byOwner.get(key) ?? { listeners: new Set(), open: new BoundedMap(maxOpen), count: 0 };
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
    this.#report(owner, from, message.text, (session) => ({
      kind: message.kind,
      ...describeMessage(session, from, message),
    }));
  }

  /** Reports that the gateway has failed a request of the client. The server does not answer it any more. */
  failed(owner: BackendOwner, id: RequestId, reason: Reason): void {
    this.#report(owner, 'server', Buffer.alloc(0), ({ open }) => ({
      kind: 'fault',
      fault: reason,
      ...takeRequest(open, requestKey('client', id)),
      isError: true,
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
    describe: (session: TappedSession) => Pick<PassedMessage, 'kind'> & MessageDescription,
  ): void {
    const session = this.#byOwner.get(backendOwnerKey(owner));
    if (session === undefined) return;
    // A fault of the tap must not harm the session.
    contain('admin', () => {
      session.count += 1;
      const showsContent = this.#inspects && [...session.listeners].some((listener) => listener.hasRoom?.() ?? true);
      const message: PassedMessage = {
        number: session.count,
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

type MessageDescription = Partial<
  Pick<PassedMessage, 'answers' | 'repeats' | 'fault' | 'method' | 'name' | 'ms' | 'isError'>
>;

/** Describes a message by its method and name, and a response by its request. */
function describeMessage({ open, count }: TappedSession, from: MessageSource, message: Message): MessageDescription {
  const method = message.method?.slice(0, maxNameLength);
  const name = methodOf(method).names === undefined ? undefined : memberValue(message, 'params', 'name');
  const description = { method, ...(typeof name === 'string' && { name: name.slice(0, maxNameLength) }) };
  if (message.kind === 'notification') return description;
  if (message.kind === 'request') {
    const key = requestKey(from, message.id);
    const earlier = open.get(key);
    open.set(key, earlier ?? { number: count, method: method ?? '', at: performance.now() });
    return earlier === undefined ? description : { ...description, repeats: earlier.number };
  }
  const request = takeRequest(open, requestKey(from === 'client' ? 'server' : 'client', message.id));
  const isFailedTool = methodOf(request?.method).names === 'tool' && message.reportsToolError;
  return { isError: message.isError || isFailedTool, ...request };
}

/** Removes an answered request, and returns what its response is shown with; undefined if the tap has not seen it. */
function takeRequest(
  open: BoundedMap<string, OpenRequest>,
  key: string,
): Required<Pick<PassedMessage, 'answers' | 'method' | 'ms'>> | undefined {
  const request = open.get(key);
  open.delete(key);
  if (request === undefined) return undefined;
  return { answers: request.number, method: request.method, ms: Math.round(performance.now() - request.at) };
}

const requestKey = (from: MessageSource, id: RequestId | null | undefined): string => `${from} ${typeof id} ${id}`;
