import { setTimeout as delay } from 'node:timers/promises';
import type { Reason, RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { newestLegacy } from '../../../core/protocol/known-revisions.ts';
import {
  createBadResponse,
  createMessage,
  type Message,
  readGatewayMessage,
} from '../../../core/protocol/message/message.ts';
import type { Principal } from '../../../core/protocol/principal.ts';
import type { Sessions } from '../../../core/registry/sessions.ts';
import type { Server } from '../../../core/server/server.ts';
import type { SessionLookup } from '../../../core/session/lookup.ts';
import type { GroupRequestOptions, SessionHandle } from '../../../core/session/session-handle.ts';
import type { Store } from '../../../core/store/store.ts';
import { ifUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import { backoff } from '../../../core/util/timing/backoff.ts';
import { type InitializedServer, readInitialized } from '../translate/modern-on-legacy/legacy-discovery.ts';
import { ask } from './call-stream.ts';

/** The parts that all sessions of a server's groups share. */
export interface GroupSessionHost {
  readonly sessions: Pick<Sessions, 'ofGroup' | 'openForGroup'>;
  readonly records: Pick<Store['sessions'], 'find'>;
  readonly server: Server;
  /** The gateway's own version. */
  readonly version: string;
  /** How long another request or instance may take to open or end the session, in milliseconds. */
  readonly settleMs: number;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** The properties of a group's session. */
export interface GroupSessionParts {
  readonly key: string;
  readonly principal: Principal;
  /** The client capabilities that the server gets, as JSON text. */
  readonly capabilitiesText: string;
  /**
   * The `clientInfo` of the session's only client, as JSON text; absent if there are several clients, or none is given.
   */
  readonly infoText?: string | undefined;
  /** True if the session serves one request, and ends with it. */
  readonly isForOne?: boolean;
  /** The topic under which the clients of the group get changes. */
  readonly topic: string;
}

/** A session that can be used. */
export interface OpenGroupSession {
  readonly handle: SessionHandle;
  /** The server's answer to `initialize`. */
  readonly opened: InitializedServer;
}

/** How long after its time limit a parked call is certainly over, also if the limit is checked only now and then. */
const unresumedMs = 30_000;

/** The pause between two attempts while another request or instance opens or ends the session. */
const pauseMs = 50;

/** For so long, and with such pauses, a message is sent again to a session that cannot be reached. */
const deliverMs = 60_000;
const deliverPauseAfter = backoff({ firstMs: 100, maxMs: 5_000, spread: [0.5, 1] });

const initialized = createMessage({ method: 'notifications/initialized' });

/**
 * One session of a group (docs/decisions/0027). Every instance derives the same key, so every instance finds
 * the session wherever it is held. If there is none, the first request that needs it opens it as its client.
 */
export class GroupSession {
  readonly key: string;
  readonly #host: GroupSessionHost;
  readonly #parts: GroupSessionParts;
  readonly #onOpened: (opened: InitializedServer) => void;
  #known: InitializedServer | undefined;
  #refusal: Message | undefined;
  /** The open calls of this instance, and when those that wait for their clients are given up. */
  readonly #calls = new Map<string, number>();
  #opening: Promise<InitializedServer | Reason> | undefined;

  /** @param onOpened called with the server's answer to `initialize` when the session was opened or found */
  constructor(host: GroupSessionHost, parts: GroupSessionParts, onOpened: (opened: InitializedServer) => void) {
    this.#host = host;
    this.#parts = parts;
    this.key = parts.key;
    this.#onOpened = onOpened;
  }

  /** True if the session is known to exist. Otherwise `open` may start the server. */
  get isOpen(): boolean {
    return this.#known !== undefined;
  }

  /** The server's error to the newest `initialize`; undefined if it accepted it, or did not answer. */
  get refusal(): Message | undefined {
    return this.#refusal;
  }

  /**
   * Returns the session, opened if need be, or the reason why there is none.
   * @param forwarded the request's headers for the server
   */
  async open(forwarded?: ForwardedHeaders): Promise<OpenGroupSession | Reason> {
    let known = this.#known;
    if (known === undefined) {
      this.#opening ??= this.#findOrOpen(forwarded).finally(() => {
        this.#opening = undefined;
      });
      const opened = await this.#opening;
      if (typeof opened === 'string') return opened;
      known = opened;
      this.#known = opened;
      this.#onOpened(opened);
    }
    return this.#findOpen(known, forwarded); // the session may have ended meanwhile
  }

  /** As `open`, for a session in which a call is already running: a missing session is not opened again. */
  async reopen(forwarded?: ForwardedHeaders): Promise<OpenGroupSession | Reason> {
    const known = this.#known ?? (await this.#readRecord());
    if (known === undefined) return 'unknown_session';
    if (typeof known === 'string') return known;
    this.#known = known;
    return this.#findOpen(known, forwarded);
  }

  async #findOpen(opened: InitializedServer, forwarded?: ForwardedHeaders): Promise<OpenGroupSession | Reason> {
    const handle = await this.find(forwarded);
    return typeof handle === 'string' ? handle : { handle, opened };
  }

  /** Finds the session; `unknown_session` if there is none. */
  async find(forwarded?: ForwardedHeaders): Promise<SessionHandle | Reason> {
    const { sessions, onFailed } = this.#host;
    try {
      return await sessions.ofGroup(this.#lookup(forwarded));
    } catch (cause) {
      onFailed(cause);
      return 'internal';
    }
  }

  /** The number of open calls, also of those that wait for their clients, as far as this instance knows. */
  get openCalls(): number {
    if (this.#calls.size === 0) return 0;
    const now = performance.now();
    for (const [call, untilMs] of this.#calls) if (untilMs <= now) this.#calls.delete(call);
    return this.#calls.size;
  }

  /** A call begins. */
  begin(call: string): void {
    this.#calls.set(call, Number.POSITIVE_INFINITY);
  }

  /** A call waits for its client, at most this long. A session for it alone then ends, if no instance has resumed it. */
  park(call: string, forMs: number): void {
    this.#calls.set(call, performance.now() + forMs);
    if (this.#parts.isForOne !== true) return;
    const endUnused = (): void => detach('session', this.send([], undefined, { endsUnused: true }));
    setTimeout(endUnused, forMs + unresumedMs).unref();
  }

  /** A request, or this call, is over. A session that served it alone ends. */
  release(call = ''): void {
    this.#calls.delete(call);
    if (this.#parts.isForOne === true) detach('session', this.#end());
  }

  /**
   * Sends the session one request, or messages that need no answer. Resolves with the response, with the reason why
   * there is none, or with nothing if the session has accepted the messages.
   */
  async send(
    messages: readonly Message[],
    forwarded?: ForwardedHeaders,
    group?: GroupRequestOptions,
  ): Promise<Message | Reason | undefined> {
    const handle = await this.find(forwarded);
    if (typeof handle === 'string') return handle;
    return ask((reply) => handle.post({ messages, isBatch: false, ...(group && { group }) }, reply), forwarded);
  }

  /**
   * Sends the session a message that needs no answer, again until it is taken: the question or call that it ends would
   * keep other clients waiting at their session. Gives up after a while, when that call is given up, too.
   */
  deliver(message: Message, forwarded?: ForwardedHeaders): Promise<void> {
    return this.#sendUntilTaken([message], forwarded);
  }

  /** Tells the session that a later request reads on with this call; see `GroupRequestOptions.keeps`. */
  keep(id: RequestId, forwarded?: ForwardedHeaders): Promise<void> {
    return this.#sendUntilTaken([], forwarded, { keeps: id });
  }

  async #sendUntilTaken(
    messages: readonly Message[],
    forwarded?: ForwardedHeaders,
    group?: GroupRequestOptions,
  ): Promise<void> {
    const until = performance.now() + deliverMs;
    for (let attempts = 0; ; attempts += 1) {
      const refused = await this.send(messages, forwarded, group);
      if (refused === undefined || performance.now() >= until) return;
      await delay(deliverPauseAfter(attempts), undefined, { ref: false });
    }
  }

  async #end(): Promise<void> {
    const handle = await this.find();
    if (typeof handle !== 'string') await ask((reply) => handle.remove(reply));
  }

  /** Notes that the session has ended. */
  forget(): void {
    this.#known = undefined;
  }

  #lookup(forwarded: ForwardedHeaders | undefined): SessionLookup {
    const { key, principal, topic } = this.#parts;
    return { key, server: this.#host.server, principal, isGroup: true, topic, forwarded };
  }

  /** Finds the session or opens it, and retries while another request or instance is doing so. */
  async #findOrOpen(forwarded: ForwardedHeaders | undefined): Promise<InitializedServer | Reason> {
    const until = performance.now() + this.#host.settleMs;
    for (;;) {
      const known = await this.#readRecord();
      if (known !== undefined) return known;
      const outcome = await ask(
        (reply) => this.#host.sessions.openForGroup(this.#lookup(forwarded), this.#initializeMessage(), reply),
        forwarded,
        'server_start_failed',
      );
      this.#refusal = undefined;
      if (typeof outcome === 'object') {
        const read = readAnswer(outcome.text);
        if (typeof read === 'string') this.#refusal = asRefusal(outcome);
        else detach('session', this.send([initialized], forwarded));
        return read;
      }
      // Another instance was faster, or an earlier session is still ending.
      if (outcome !== 'already_initialized' || performance.now() >= until) return outcome ?? 'server_start_failed';
      await delay(pauseMs);
    }
  }

  /** Reads the server's answer to `initialize` from the session's record; undefined if there is none. */
  async #readRecord(): Promise<InitializedServer | Reason | undefined> {
    const found = await this.#host.records.find(this.key).catch(ifUnavailable('store_unavailable'));
    return typeof found === 'string' ? found : found?.initialized && readAnswer(found.initialized);
  }

  /**
   * The gateway's `initialize` as a client (2025-11-25, basic/lifecycle). It carries the client's `clientInfo` if the
   * session serves one client only, else the gateway's.
   */
  #initializeMessage(): Message {
    const { capabilitiesText, infoText } = this.#parts;
    const protocolVersion = JSON.stringify(newestLegacy.name);
    const clientInfo = infoText ?? JSON.stringify({ name: 'mcp-gangway', version: this.#host.version });
    const params = `{"protocolVersion":${protocolVersion},"capabilities":${capabilitiesText},"clientInfo":${clientInfo}}`;
    return readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":${params}}`));
  }
}

/** A result that is no answer to `initialize` becomes an error that says so. */
const asRefusal = (response: Message): Message =>
  response.isError
    ? response
    : createBadResponse(
        response.id as RequestId,
        'the result of initialize has no protocolVersion that is a text',
        response.text,
      );

const readAnswer = (text: Buffer): InitializedServer | Reason => readInitialized(text) ?? 'server_start_failed';
