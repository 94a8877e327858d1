import {
  type BackendOwner,
  backendOwnerKey,
  type MessageListener,
  type MessageSource,
  type PassedMessage,
  redactContent,
} from '@mcp-gangway/console';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { type Message, memberValue } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import { contain } from '../../core/util/boundary.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';
import { consoleHost } from './console-host.ts';

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
  readonly listeners: Set<MessageListener>;
  /** The unanswered requests, by sender and id. */
  readonly open: BoundedMap<string, OpenRequest>;
  /** The number of messages so far. */
  count: number;
}

/**
 * Taps the messages of sessions for pages that show one of them. Nothing is stored, and nothing is done for a session
 * that no page shows. Callers check `isWatched` before `passed`, which keeps the usual case free.
 */
export class MessageTap implements MessageSource {
  /** True while a page shows any session. */
  isWatched = false;
  readonly #inspects: boolean;
  readonly #byOwner = new Map<string, TappedSession>();

  /** @param inspects true if the page shows the contents of messages */
  constructor(inspects: boolean) {
    this.#inspects = inspects;
  }

  /** Adds a listener to the messages of a session. Returns a function that removes the listener. */
  watch(listener: MessageListener): () => void {
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
  passed(owner: BackendOwner, from: PassedMessage['from'], message: Message): void {
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
    from: PassedMessage['from'],
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
        ...(showsContent && { text: redactContent(consoleHost, text) }),
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
function describeMessage(
  { open, count }: TappedSession,
  from: PassedMessage['from'],
  message: Message,
): MessageDescription {
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

const requestKey = (from: PassedMessage['from'], id: RequestId | null | undefined): string =>
  `${from} ${typeof id} ${id}`;
