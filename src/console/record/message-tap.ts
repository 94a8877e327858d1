import type { RequestId } from '../../protocol/faults.ts';
import { type Message, memberRange, readBody } from '../../protocol/message/message.ts';
import { contain } from '../../util/boundary.ts';
import { type BackendOwner, backendOwnerKey } from './backend-owner.ts';
import { redactContent } from './redacted-content.ts';

/** Who has sent a message. */
export type MessageSource = 'client' | 'server';

/** One message as the page shows it. */
export interface PassedMessage {
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly from: MessageSource;
  readonly kind: Message['kind'] | 'noise';
  /** Of a response the method that it answers, where that was seen. */
  readonly method?: string | undefined;
  /** In bytes. */
  readonly size: number;
  /** From the request, where that was seen, to this response. */
  readonly ms?: number | undefined;
  readonly isError?: boolean;
  /** What it says; only where the operator allows it. */
  readonly text?: string;
}

/** Who looks at the messages of one session. */
export interface MessageTapListener {
  readonly owner: BackendOwner;
  onMessage(message: PassedMessage): void;
  /** False while further messages are only counted: what they say is not looked at. */
  hasRoom?(): boolean;
}

/** So many requests without an answer are remembered for each watched session (P8). */
const maxOpen = 1_000;

/** A peer decides how long a method is. */
const maxMethodLength = 128;

/** A longer text is not read: the page says its size, and this process goes on. */
const maxReadBytes = 1024 * 1024;

interface Watched {
  readonly watchers: Set<MessageTapListener>;
  /** Requests without an answer, by who has sent them and their id. */
  readonly open: Map<string, { readonly method: string; readonly at: number }>;
}

/**
 * The messages of sessions as they pass, for those who look at one of them. Nothing is kept, and nothing is done while nobody
 * looks: whoever passes messages asks `isWatched` first.
 */
export class MessageTap {
  /** True while anybody looks at any session. */
  isWatched = false;
  readonly #inspects: boolean;
  readonly #byOwner = new Map<string, Watched>();

  /** @param inspects true if what messages say is shown */
  constructor(inspects: boolean) {
    this.#inspects = inspects;
  }

  /** Looks at the messages of a session from now on. Returns what ends that. */
  watch(watcher: MessageTapListener): () => void {
    const key = backendOwnerKey(watcher.owner);
    const watched = this.#byOwner.get(key) ?? { watchers: new Set(), open: new Map() };
    watched.watchers.add(watcher);
    this.#byOwner.set(key, watched);
    this.isWatched = true;
    return () => {
      watched.watchers.delete(watcher);
      if (watched.watchers.size === 0) this.#byOwner.delete(key);
      this.isWatched = this.#byOwner.size > 0;
    };
  }

  /** A message passes. */
  passed(owner: BackendOwner, from: MessageSource, text: Uint8Array): void {
    const watched = this.#byOwner.get(backendOwnerKey(owner));
    if (watched === undefined) return;
    // Whoever looks must not harm what is looked at.
    contain('admin', () => this.#tell(watched, from, text));
  }

  #tell(watched: Watched, from: MessageSource, text: Uint8Array): void {
    const isShown = [...watched.watchers].some((watcher) => watcher.hasRoom?.() ?? true);
    for (const message of this.#read(watched, from, text, isShown))
      for (const watcher of watched.watchers) watcher.onMessage(message);
  }

  #read({ open }: Watched, from: MessageSource, bytes: Uint8Array, isShown: boolean): PassedMessage[] {
    const common = { at: Date.now(), from, ...(this.#inspects && isShown && { text: redactContent(bytes) }) };
    const noise: PassedMessage = { ...common, kind: 'noise', size: bytes.length };
    if (bytes.length > maxReadBytes) return [noise];
    const body = readBody(Buffer.from(bytes), Number.POSITIVE_INFINITY);
    if (!body.ok) return [noise];
    return body.messages.map((read) => {
      if (!read.ok) return noise;
      const { message } = read;
      return { ...common, kind: message.kind, size: message.text.length, ...answered(open, from, message) };
    });
  }
}

/** What a message is about, and how long it took if it is a response. */
function answered(
  open: Watched['open'],
  from: MessageSource,
  message: Message,
): Pick<PassedMessage, 'method' | 'ms' | 'isError'> {
  const method = message.method?.slice(0, maxMethodLength);
  if (message.kind === 'notification') return { method };
  if (message.kind === 'request') {
    open.set(requestKey(from, message.id), { method: method ?? '', at: performance.now() });
    const [oldest] = open.keys();
    if (open.size > maxOpen && oldest !== undefined) open.delete(oldest);
    return { method };
  }
  const key = requestKey(from === 'client' ? 'server' : 'client', message.id);
  const request = open.get(key);
  open.delete(key);
  const isError = memberRange(message, 'message', 'error') !== undefined;
  return { isError, ...(request && { method: request.method, ms: Math.round(performance.now() - request.at) }) };
}

const requestKey = (from: MessageSource, id: RequestId | null | undefined): string => `${from} ${typeof id} ${id}`;
