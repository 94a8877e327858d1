import { setTimeout as delay } from 'node:timers/promises';
import type { Reason } from '../../protocol/faults.ts';
import { readHandshake } from '../../protocol/handshake.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type Message, readGatewayMessage } from '../../protocol/message/message.ts';
import type { Principal } from '../../protocol/principal.ts';
import { legacyRevisions } from '../../protocol/revisions.ts';
import { type InitializedServer, readInitialized } from '../../protocol/translate/modern-on-legacy/legacy-discovery.ts';
import type { Sessions } from '../../registry/sessions.ts';
import type { Server } from '../../server/server.ts';
import type { SessionLookup } from '../../session/lookup.ts';
import type { SessionHandle } from '../../session/session-handle.ts';
import type { Store } from '../../store/store.ts';
import { StoreUnavailable } from '../../store/store-unavailable.ts';
import { detach } from '../../util/boundary.ts';
import { SessionReply } from './session-reply.ts';

/** What the places of a server have in common. */
export interface PoolSlotHost {
  readonly sessions: Pick<Sessions, 'ofGroup' | 'openForGroup'>;
  readonly records: Pick<Store['sessions'], 'find'>;
  readonly server: Server;
  /** The gateway's own version. */
  readonly version: string;
  /** How long another one may take to open or end the session of a place, in milliseconds. */
  readonly settleMs: number;
  /** A fault of the gateway itself. */
  onFailed(cause: unknown): void;
}

/** What a place is for. */
export interface PoolSlotParts {
  readonly key: string;
  readonly principal: Principal;
  /** What its server is told that it may ask for, as JSON text. */
  readonly capabilitiesText: string;
  /** What its only client calls itself, as JSON text; absent if it does not say, or is not the only one. */
  readonly infoText?: string | undefined;
  /** Under which changes are told to the clients of its group. */
  readonly topic: string;
}

/** A session of a group that is there to be used. */
export interface OpenSlot {
  readonly handle: SessionHandle;
  /** What its server said of itself. */
  readonly opened: InitializedServer;
  readonly protocolVersion: string;
}

/** The pause between looks at a place that another one is about to fill or to leave. */
const pauseMs = 50;

const initializeId = 'mcp-gangway-open';
const initialized = readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","method":"notifications/initialized"}'));

/**
 * One place for a session of a group (docs/decisions/0027). Its key says what it is for, so that every instance finds the
 * session that is there, wherever it is held; where there is none, whoever needs it first opens it as its client.
 */
export class PoolSlot {
  readonly key: string;
  readonly #host: PoolSlotHost;
  readonly #of: PoolSlotParts;
  readonly #onOpened: (opened: Omit<OpenSlot, 'handle'>) => void;
  #known: Omit<OpenSlot, 'handle'> | undefined;
  #newest: OpenSlot | undefined;
  #opening: Promise<Omit<OpenSlot, 'handle'> | Reason> | undefined;

  /** @param onOpened is told what the server said of itself when its session was opened or found */
  constructor(host: PoolSlotHost, of: PoolSlotParts, onOpened: (opened: Omit<OpenSlot, 'handle'>) => void) {
    this.#host = host;
    this.#of = of;
    this.key = of.key;
    this.#onOpened = onOpened;
  }

  /** False if its session is not known to be there: `open` may start the server. */
  get isOpen(): boolean {
    return this.#known !== undefined;
  }

  /**
   * The session, opened if need be, or why there is none.
   * @param forwarded what the request brings for the server
   */
  async open(forwarded?: ForwardedHeaders): Promise<OpenSlot | Reason> {
    let known = this.#known;
    if (known === undefined) {
      this.#opening ??= this.#settle(forwarded).finally(() => {
        this.#opening = undefined;
      });
      const opened = await this.#opening;
      if (typeof opened === 'string') return opened;
      known = opened;
      this.#known = opened;
      this.#onOpened(opened);
    }
    // Another request may find meanwhile that the session has ended.
    const handle = await this.find(forwarded);
    return typeof handle === 'string' ? handle : this.#openAs(handle, known);
  }

  /** As `open`, for a session that is there because something was begun in it: it is not opened anew. */
  async reopen(forwarded?: ForwardedHeaders): Promise<OpenSlot | Reason> {
    const said = this.#known ?? (await this.#said());
    if (said === undefined) return 'unknown_session';
    if (typeof said === 'string') return said;
    const known = Buffer.isBuffer(said) ? readAnswer(said) : said;
    if (typeof known === 'string') return known;
    this.#known = known;
    const handle = await this.find(forwarded);
    return typeof handle === 'string' ? handle : this.#openAs(handle, known);
  }

  /** The same as for the request before, mostly. */
  #openAs(handle: SessionHandle, known: Omit<OpenSlot, 'handle'>): OpenSlot {
    const newest = this.#newest;
    if (newest?.handle === handle && newest.opened === known.opened) return newest;
    this.#newest = { handle, ...known };
    return this.#newest;
  }

  /** The session as it is; `unknown_session` if there is none. */
  async find(forwarded?: ForwardedHeaders): Promise<SessionHandle | Reason> {
    const { sessions, onFailed } = this.#host;
    try {
      return await sessions.ofGroup(this.#visitor(forwarded));
    } catch (cause) {
      onFailed(cause);
      return 'internal';
    }
  }

  /** The session is not there any more. */
  forget(): void {
    this.#known = undefined;
  }

  #visitor(forwarded: ForwardedHeaders | undefined): SessionLookup {
    const { key, principal, topic } = this.#of;
    return { key, server: this.#host.server, principal, isGroup: true, topic, forwarded };
  }

  /** Finds what is there, or opens it, until one of both has come about. */
  async #settle(forwarded: ForwardedHeaders | undefined): Promise<Omit<OpenSlot, 'handle'> | Reason> {
    const until = performance.now() + this.#host.settleMs;
    for (;;) {
      const said = await this.#said();
      if (said === 'store_unavailable') return said;
      if (said !== undefined) return readAnswer(said);
      const outcome = await this.#initialize(forwarded);
      if (typeof outcome !== 'string') return readAnswer(outcome.text);
      // Somebody else is faster, or an earlier session is not quite gone.
      if (outcome !== 'already_initialized' || performance.now() >= until) return outcome;
      await delay(pauseMs);
    }
  }

  /** What the server of the session has answered to `initialize`. */
  async #said(): Promise<Buffer | undefined | 'store_unavailable'> {
    try {
      return (await this.#host.records.find(this.key))?.initialized;
    } catch (cause) {
      if (cause instanceof StoreUnavailable) return 'store_unavailable';
      throw cause;
    }
  }

  #initialize(forwarded: ForwardedHeaders | undefined): Promise<Message | Reason> {
    const { sessions, version } = this.#host;
    return new Promise((resolve) => {
      const reply = new SessionReply(
        {
          message: (message) => {
            if (message.kind !== 'response') return;
            if (readHandshake(message.text) !== undefined) detach('session', this.#confirm(forwarded));
            resolve(message);
          },
          fault: resolve,
          ended: () => resolve('server_start_failed'),
        },
        forwarded,
      );
      sessions.openForGroup(this.#visitor(forwarded), initializeOf(this.#of, version), reply);
    });
  }

  async #confirm(forwarded: ForwardedHeaders | undefined): Promise<void> {
    const handle = await this.find(forwarded);
    if (typeof handle === 'string') return; // it has ended already, which whoever asks for it is told
    const reply = new SessionReply({ message: () => undefined, fault: () => undefined, ended: () => undefined });
    handle.post({ messages: [initialized], isBatch: false }, reply);
  }
}

function readAnswer(text: Buffer): Omit<OpenSlot, 'handle'> | Reason {
  const handshake = readHandshake(text);
  if (handshake === undefined) return 'server_start_failed';
  return { opened: readInitialized(readGatewayMessage(text)), protocolVersion: handshake.protocolVersion };
}

/**
 * The `initialize` of the gateway as a client (2025-11-25, basic/lifecycle): in the name of its client where the process is that
 * one's alone, else in its own.
 */
function initializeOf({ capabilitiesText, infoText }: PoolSlotParts, version: string): Message {
  const protocolVersion = JSON.stringify(legacyRevisions.at(-1));
  const clientInfo = infoText ?? JSON.stringify({ name: 'mcp-gangway', version });
  const params = `{"protocolVersion":${protocolVersion},"capabilities":${capabilitiesText},"clientInfo":${clientInfo}}`;
  return readGatewayMessage(
    Buffer.from(`{"jsonrpc":"2.0","id":"${initializeId}","method":"initialize","params":${params}}`),
  );
}
