import type { CookieState } from '../../backend/cookie-jar.ts';
import type { Reason, RequestId } from '../../protocol/faults.ts';
import { withLegacyRevision } from '../../protocol/handshake.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import { parseOwn, scalarAt, spliceId } from '../../protocol/json.ts';
import { refusalOfSubscription } from '../../protocol/kept-uris.ts';
import { type Message, readGatewayMessage } from '../../protocol/message/message.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import { readLogLevel } from '../../protocol/modern/log-levels.ts';
import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { SessionRecord } from '../../store/session-records.ts';
import { detachedCopy } from '../../util/detached-bytes.ts';
import { SparseMap } from '../../util/sparse-map.ts';

/** The kind of client that a session has. An ordinary client with a session of its own has neither flag. */
export interface ClientKind {
  /** The client gets everything, answers too, on one stream, and lives with it (docs/decisions/0195). */
  readonly isOneStream?: boolean | undefined;
  /** The client is the gateway, for all modern clients of a group (docs/decisions/0027). */
  readonly isGroup?: boolean | undefined;
  /** For a group: the topic under which its instances learn of changes at the server. */
  readonly topic?: string | undefined;
}

/** A longer notification is replaced by the plain one (P8). */
const maxInitializedBytes = 16 * 1024;

/** A longer request is replaced by a plain one with the same URI or log level (P8). */
const maxKeptBytes = 4 * 1024;

const initializedNotification = Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}');

/**
 * The state that a client has set at its server, for a replay to a new process (docs/design.md, D5): `initialize`, the
 * initialized notification, the log level and resource subscriptions. Its size is bounded: one log level, and at most
 * `maxSubscriptions` subscriptions, with at most `maxKeptBytes` each.
 */
export class ClientState {
  readonly initialize: Buffer;
  /** See `ClientKind`. The record of such a client is read by no other owner, so it does not say this. */
  readonly isOneStream: boolean;
  /** The client is the gateway, for a group of modern clients. */
  readonly isGroup: boolean;
  readonly topic: string | undefined;
  /** How far the GET stream was delivered. A listener without an event id begins here. */
  getCursor: LogPosition | undefined;
  /** The cookies that the server has set for the session. */
  cookies: CookieState | undefined;
  /** The backend's checkpoint, if another backend can resume from it. */
  backend: BackendCheckpoint | undefined;
  #initialized: Buffer | undefined;
  #logLevel: Buffer | undefined;
  readonly #subscriptions = new SparseMap<string, Buffer>();

  /** The last saved `clientSaid`; undefined once the state differs. */
  #savedSettings: Buffer | undefined;

  /**
   * @param initialize the client's request; copied, so that it does not keep a larger buffer alive
   * @param saved the saved state of an earlier owner's client
   * @param kind of a new client; for a client of an earlier owner it is saved
   */
  constructor(initialize: Buffer, saved?: SavedClient, kind: ClientKind = {}) {
    this.initialize = detachedCopy(withLegacyRevision(initialize));
    const state = saved && parseState(saved.clientState);
    const { isGroup = false, topic } = state ?? kind;
    this.isOneStream = kind.isOneStream ?? false;
    this.isGroup = isGroup;
    this.topic = topic;
    // Always set, in case the instance that opened the group's session was lost before it sent the notification.
    if (isGroup) this.#initialized = initializedNotification;
    this.getCursor = state?.getCursor;
    this.backend = state?.backend;
    this.cookies = state?.cookies;
    if (saved === undefined || saved.clientSaid.length === 0) return;
    const { initialized, logLevel, subscriptions } = parseOwn(saved.clientSaid) as ClientSettings;
    if (initialized !== undefined) this.#initialized = detachedCopy(initialized);
    if (logLevel !== undefined) this.#logLevel = detachedCopy(logLevel);
    for (const [uri, text] of subscriptions) this.#subscriptions.set(uri, detachedCopy(text));
  }

  /** True if the client has set a log level. */
  get hasLogLevel(): boolean {
    return this.#logLevel !== undefined;
  }

  /**
   * The state for the session's record, with which another owner can continue. `clientSaid` can be large. It is the
   * same object while its content is the same, and is written only when it changes.
   */
  save(): SavedClient {
    const { topic, getCursor, backend, cookies } = this;
    const state: SavedState = { getCursor, isGroup: this.isGroup || undefined, topic, backend, cookies };
    this.#savedSettings ??= this.#serializeSettings();
    return { clientState: shareUsual(JSON.stringify(state)), clientSaid: this.#savedSettings };
  }

  #serializeSettings(): Buffer {
    const subscriptions = [...this.#subscriptions].map(([uri, text]) => [uri, text.toString()] as const);
    const settings: ClientSettings = {
      initialized: this.#initialized?.toString(),
      logLevel: this.#logLevel?.toString(),
      subscriptions,
    };
    return shareUsual(JSON.stringify(settings));
  }

  /** Notes a notification that was passed on. Returns true if the state changed. */
  noteSent({ method, text }: Message): boolean {
    if (method !== 'notifications/initialized') return false;
    // The method is all that matters: additions of a client are not replayed to a later process.
    const isUsual = text.equals(initializedNotification);
    this.#initialized = isUsual || text.length > maxInitializedBytes ? initializedNotification : detachedCopy(text);
    this.#savedSettings = undefined;
    return true;
  }

  /** True if the client, or a client that it stands for, waits for unsolicited messages of the server. */
  get expectsServer(): boolean {
    return this.#subscriptions.size > 0 || this.isGroup;
  }

  /** The resources that the server reports changes of. */
  get subscribed(): ReadonlyMap<string, unknown> {
    return this.#subscriptions;
  }

  /** The fault for a subscription that the client cannot have; undefined for any other request. */
  refusalOf({ method, text }: Message): Reason | undefined {
    if (method !== 'resources/subscribe') return undefined;
    const uri = scalarAt(text, ['params', 'uri']);
    return typeof uri === 'string' ? refusalOfSubscription(this.#subscriptions, uri) : undefined;
  }

  /** The server is about to be told to unsubscribe this resource. */
  noteUnsubscribing(uri: string): void {
    this.#savedSettings = undefined;
    this.#subscriptions.delete(uri);
  }

  /** Notes a request that the server answered. Returns true if the state changed. */
  noteAnswered(method: string, request: Buffer, { isError }: Pick<Message, 'isError'>): boolean {
    if (methodOf(method).effect !== 'sets' || isError) return false;
    this.#savedSettings = undefined;
    if (method === 'logging/setLevel') {
      const level = readLogLevel(scalarAt(request, ['params', 'level']));
      this.#logLevel = keptRequest(request, method, { level });
      return true;
    }
    const uri = scalarAt(request, ['params', 'uri']);
    if (typeof uri !== 'string') return false;
    // In a group, another client may have subscribed before the server answered: see `noteUnsubscribing`.
    if (method !== 'resources/subscribe') return this.isGroup || this.#subscriptions.delete(uri);
    if (refusalOfSubscription(this.#subscriptions, uri) === undefined)
      this.#subscriptions.set(uri, keptRequest(request, method, { uri }));
    return true;
  }

  /** The messages that bring an initialized server to the client's state; `ids` are those of the requests. */
  replay(): { readonly messages: readonly Message[]; readonly ids: ReadonlySet<RequestId> } {
    const ids = new Set<RequestId>();
    const requests = [...(this.#logLevel ? [this.#logLevel] : []), ...this.#subscriptions.values()].map((text) => {
      const id = nextOwnId();
      ids.add(id);
      return spliceId(text, JSON.stringify(id));
    });
    const texts = [...(this.#initialized ? [this.#initialized] : []), ...requests];
    return { messages: texts.map(readGatewayMessage), ids };
  }
}

const keptRequest = (request: Buffer, method: string, params: object): Buffer =>
  request.length <= maxKeptBytes
    ? detachedCopy(request)
    : Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 0, method, params }));

/** A client as a record has it. */
export type SavedClient = Pick<SessionRecord, 'clientState' | 'clientSaid'>;

/** The part that changes while the session is used. */
interface SavedState extends Pick<ClientKind, 'isGroup' | 'topic'> {
  readonly getCursor?: LogPosition | undefined;
  readonly backend?: BackendCheckpoint | undefined;
  readonly cookies?: CookieState | undefined;
}

/** The part that changes with the client's settings at its server. */
interface ClientSettings {
  readonly initialized?: string | undefined;
  readonly logLevel?: string | undefined;
  readonly subscriptions: readonly (readonly [string, string])[];
}

/** What a client saves that has set nothing: no state, and only the initialized notification. */
const usualTexts = ['{}', JSON.stringify({ initialized: initializedNotification.toString(), subscriptions: [] })];
const usualBuffers = new Map(usualTexts.map((text) => [text, detachedCopy(text)]));

/** Most clients save the same texts, and thousands of idle sessions share one buffer for each. */
const shareUsual = (text: string): Buffer => usualBuffers.get(text) ?? detachedCopy(text);

const parseState = (saved: Buffer): SavedState => (saved.length === 0 ? {} : (parseOwn(saved) as SavedState));

/** The checkpoint of a backend, from which the next owner can resume the server's session (docs/design.md, D5). */
export interface BackendCheckpoint {
  /** The state as reported by `BackendEvents.onState`. */
  readonly state: string;
  /** The position in the log at which all earlier server messages are stored. */
  readonly at: LogPosition;
  /** True for the session's first backend: its requests keep the ids that the server gave them (`ServerRequests`). */
  readonly isFirst: boolean;
}

/** The backend's checkpoint in a record; undefined if the server's session cannot be resumed. */
export const readBackendCheckpoint = (clientState: Buffer): BackendCheckpoint | undefined =>
  parseState(clientState).backend;
