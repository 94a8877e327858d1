import { scanObject } from '../../protocol/json/scan.ts';
import { scalarAt, spliceId, valueAt } from '../../protocol/json/splice.ts';
import type { Message } from '../../protocol/message/message.ts';
import { maxSubscriptions } from '../../protocol/modern/subscription-filter.ts';
import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { SessionRecord } from '../../store/session-records.ts';
import { detachedCopy } from '../../util/detached-copy.ts';
import { SparseMap } from '../../util/sparse-map.ts';

/** Which kind of client a session has; one of an ordinary session of its own is neither. */
export interface ClientKind {
  /** It has one stream, on which it hears everything, answers too (docs/decisions/0018). */
  readonly isOneStream?: boolean | undefined;
  /** It is the gateway, for all modern clients of a group (docs/decisions/0027). */
  readonly isGroup?: boolean | undefined;
  /** Of a group: under which its instances are told what its server says has changed. */
  readonly topic?: string | undefined;
}

/** A longer notification is not kept as it was (P8). */
const maxInitializedBytes = 16 * 1024;

const initializedNotification = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}');

/**
 * What a client has told its server that a new process of it has to be told again (docs/design.md, D5): its `initialize`,
 * that it is initialized, its log level, its resource subscriptions. Bounded by the client's own requests: one log level,
 * and one subscription for each URI.
 */
export class ClientState {
  readonly initialize: Buffer;
  /** The client has one stream, on which it hears everything, answers too (docs/decisions/0018). */
  readonly isOneStream: boolean;
  /** The client is the gateway, for a group of modern clients. */
  readonly isGroup: boolean;
  readonly topic: string | undefined;
  /** How much of the GET stream was delivered: where a listener begins that names no event. */
  getCursor: LogPosition | undefined;
  /** Where the backend stands, where another one can go on from there. */
  backend: BackendCheckpoint | undefined;
  /** What the client's requests needed of its credentials; see `UsedScopes`. */
  readonly usedScopes: Set<string>;
  #initialized: Buffer | undefined;
  #logLevel: Buffer | undefined;
  readonly #subscriptions = new SparseMap<string, Buffer>();

  /** What was said of `clientSaid` last; undefined once that is another one. */
  #said: Buffer | undefined;

  /**
   * @param initialize the client's request; copied, so that it does not keep a larger buffer alive
   * @param saved what `save` said of an earlier owner's state
   * @param kind of a new client; of an earlier owner's it is saved
   */
  constructor(initialize: Buffer, saved?: SavedClient, kind: ClientKind = {}) {
    this.initialize = detachedCopy(initialize);
    const state = saved && parse(saved.clientState);
    const { isOneStream = false, isGroup = false, topic } = state ?? kind;
    this.isOneStream = isOneStream;
    this.isGroup = isGroup;
    this.topic = topic;
    this.usedScopes = new Set(state?.usedScopes);
    // Said in any case, also where the instance that opened the session for its group was lost before it said so.
    if (isGroup) this.#initialized = initializedNotification;
    this.getCursor = state?.getCursor;
    this.backend = state?.backend;
    if (saved === undefined || saved.clientSaid.length === 0) return;
    const { initialized, logLevel, subscriptions } = JSON.parse(saved.clientSaid.toString()) as Said;
    if (initialized !== undefined) this.#initialized = detachedCopy(initialized);
    if (logLevel !== undefined) this.#logLevel = detachedCopy(logLevel);
    for (const [uri, text] of subscriptions) this.#subscriptions.set(uri, detachedCopy(text));
  }

  /** The client has said which log messages it wants. */
  get hasLogLevel(): boolean {
    return this.#logLevel !== undefined;
  }

  /** The client has declared something that the server may ask of it. */
  get acceptsServerRequests(): boolean {
    const declared = valueAt(this.initialize, ['params', 'capabilities']);
    const members = declared && scanObject(declared);
    return typeof members === 'object' && members.keys.length > 0;
  }

  /**
   * For the session's record, so that another owner can go on from here. `clientSaid` is the same object as long as it says the
   * same: it can be large, and is written again only if it is another one.
   */
  save(): SavedClient {
    const { topic, getCursor, backend } = this;
    const kind = { isOneStream: this.isOneStream || undefined, isGroup: this.isGroup || undefined, topic };
    const usedScopes = this.usedScopes.size > 0 ? [...this.usedScopes] : undefined;
    const state: SavedState = { getCursor, ...kind, backend, usedScopes };
    this.#said ??= this.#saySaid();
    return { clientState: detachedCopy(JSON.stringify(state)), clientSaid: this.#said };
  }

  #saySaid(): Buffer {
    const subscriptions = [...this.#subscriptions].map(([uri, text]) => [uri, text.toString()] as const);
    const said: Said = {
      initialized: this.#initialized?.toString(),
      logLevel: this.#logLevel?.toString(),
      subscriptions,
    };
    return detachedCopy(JSON.stringify(said));
  }

  /** Takes note of a notification that was passed on. Returns true if it changed anything. */
  sent({ method, text }: Message): boolean {
    if (method !== 'notifications/initialized') return false;
    // It says nothing but that it comes: what else a client adds is told to no later process.
    this.#initialized = text.length > maxInitializedBytes ? initializedNotification : detachedCopy(text);
    this.#said = undefined;
    return true;
  }

  /** The client waits for what its server says by itself, or others do for whom it stands. */
  get expectsServer(): boolean {
    return this.#subscriptions.size > 0 || this.isGroup;
  }

  /** The resources that the server tells of. */
  get subscribed(): ReadonlyMap<string, unknown> {
    return this.#subscriptions;
  }

  /** The server is about to be told to tell no more of this resource. */
  unsubscribing(uri: string): void {
    this.#said = undefined;
    this.#subscriptions.delete(uri);
  }

  /** Takes note of a request that the server answered. Returns true if it changed anything. */
  answered(method: string, request: Buffer, { isError }: Pick<Message, 'isError'>): boolean {
    if (!isStateful(method) || isError) return false;
    this.#said = undefined;
    if (method === 'logging/setLevel') {
      this.#logLevel = detachedCopy(request);
      return true;
    }
    const uri = scalarAt(request, ['params', 'uri']);
    if (typeof uri !== 'string') return false;
    if (method !== 'resources/subscribe') this.#subscriptions.delete(uri);
    else if (this.#subscriptions.size < maxSubscriptions) this.#subscriptions.set(uri, detachedCopy(request));
    return true;
  }

  /** The messages that bring an initialized server to where the lost one was; `ids` are those of the requests. */
  replay(newId: () => string): { readonly texts: readonly Buffer[]; readonly ids: ReadonlySet<string> } {
    const ids = new Set<string>();
    const requests = [...(this.#logLevel ? [this.#logLevel] : []), ...this.#subscriptions.values()].map((text) => {
      const id = newId();
      ids.add(id);
      return spliceId(text, JSON.stringify(id));
    });
    return { texts: [...(this.#initialized ? [this.#initialized] : []), ...requests], ids };
  }
}

/** A client as a record has it. */
export type SavedClient = Pick<SessionRecord, 'clientState' | 'clientSaid'>;

/** What changes with the use of the session. */
interface SavedState extends ClientKind {
  readonly getCursor?: LogPosition | undefined;
  readonly backend?: BackendCheckpoint | undefined;
  readonly usedScopes?: readonly string[] | undefined;
}

/** What changes with what the client tells its server. */
interface Said {
  readonly initialized?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly subscriptions: readonly (readonly [string, string])[];
}

/** What was read of records that are remembered: an instance asks for it with each request that it passes on. */
const parsed = new WeakMap<Buffer, SavedState>();

function parse(saved: Buffer): SavedState {
  const known = parsed.get(saved);
  if (known !== undefined) return known;
  const state = saved.length === 0 ? {} : (JSON.parse(saved.toString()) as SavedState);
  parsed.set(saved, state);
  return state;
}

/** Where a backend stood, for the next owner of the session to go on with its server (docs/design.md, D5). */
export interface BackendCheckpoint {
  /** As `BackendEvents.onState` told it. */
  readonly state: string;
  /** Up to here the log had what the server had said by then. */
  readonly at: LogPosition;
  /** True for the first of the session: its questions have the ids that the server gave them (`ServerRequests`). */
  readonly isFirst: boolean;
}

/** Where the backend of a session stood that an earlier owner had; undefined if nothing can be gone on with. */
export const readBackendCheckpoint = (clientState: Buffer): BackendCheckpoint | undefined => parse(clientState).backend;

/** What requests of a session needed whose record has this client state. */
export const readUsedScopes = (clientState: Buffer): readonly string[] => parse(clientState).usedScopes ?? [];

/** True for the requests that change what a server keeps for its client. */
export const isStateful = (method: string): boolean =>
  method === 'logging/setLevel' || method === 'resources/subscribe' || method === 'resources/unsubscribe';
