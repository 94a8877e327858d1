import type { BackendEnd } from '../backend/backend.ts';
import type { EventId } from '../protocol/event-id.ts';
import { declaredListChanges, type Handshake, readHandshake } from '../protocol/handshake.ts';
import type { Message } from '../protocol/message.ts';
import { allowsBatches, assumedRevision, hasPrimingEvent } from '../protocol/revisions.ts';
import type { Principal } from '../store/store.ts';
import { Answer } from './answer.ts';
import { type Call, Calls } from './calls.ts';
import { ClientState } from './client-state.ts';
import { Inbound, idOf } from './inbound.ts';
import type { Dropped, SessionName } from './observer.ts';
import { Outbound } from './outbound.ts';
import type { Reply } from './reply.ts';
import { Reruns } from './rerun.ts';
import { Router } from './router.ts';
import { ServerRequests } from './server-requests.ts';
import { faultAtEnd, type SessionEnd } from './session-end.ts';
import type { Server, SessionParts } from './session-parts.ts';
import { getStream } from './streams.ts';
import { createUnloggedStream } from './unlogged-stream.ts';
import { Upstream } from './upstream.ts';

/**
 * One client of a legacy-era revision and its backend, from `initialize` to the end. Messages of the client go to the
 * backend as they come (`Inbound`); those of the backend go to the answer or stream where they belong (`Router`), by way
 * of the event log (`Outbound`). A backend that is lost is restored (`Upstream`).
 */
export class Session {
  readonly id: string;
  readonly principal: Principal;
  readonly server: Server;
  readonly name: SessionName;
  /** The negotiated revision; until the server has answered `initialize`, the one that the specification assumes. */
  protocolVersion: string = assumedRevision;
  readonly #parts: SessionParts;
  readonly #epoch = Date.now();
  readonly #initialize: Message;
  readonly #calls = new Calls();
  readonly #serverRequests = new ServerRequests();
  readonly #reruns: Reruns;
  readonly #client: ClientState;
  readonly #router: Router;
  readonly #outbound: Outbound;
  readonly #upstream: Upstream;
  readonly #inbound: Inbound;
  readonly #dropped: Partial<Record<Dropped, number>> = {};
  readonly #startedAt = performance.now();
  /** What the server said of itself; undefined until the session is ready. */
  #handshake: Handshake | undefined;
  /** Calls of a lost backend that the next one runs again. */
  #lostCalls: readonly Call[] = [];
  #startTimer: NodeJS.Timeout | undefined;
  #lastActivityAt = performance.now();
  #ending: Promise<void> | undefined;

  /** Opens a backend for a client that sent `initialize`. */
  constructor(parts: SessionParts, initialize: Message) {
    const { id, key, server, principal, store, options, observer } = parts;
    this.id = id;
    this.principal = principal;
    this.server = server;
    this.name = { server: server.name, session: key.slice(0, 8) };
    this.#parts = parts;
    this.#client = new ClientState(initialize.text);
    this.#initialize = { ...initialize, text: this.#client.initialize };
    this.#reruns = new Reruns(server.rerun);
    const primes = (): boolean => hasPrimingEvent(this.protocolVersion);
    this.#router = new Router({
      calls: this.#calls,
      serverRequests: this.#serverRequests,
      maxEventBytes: options.maxEventBytes,
      hasGetStream: () => this.#outbound.streams.hasGet,
      hasRoom: () => this.#outbound.hasRoom,
      toGetStream: (text) => this.#outbound.add(getStream, text, false),
      toServer: (text) => void this.#upstream.send(text),
      incarnation: () => this.#upstream.incarnation,
      onAnswered: (call, response) => this.#answered(call, response),
      onInitialized: (call, text) => void this.#initialized(call, text),
      onDropped: (what, text) => this.#drop(what, text),
    });
    this.#outbound = new Outbound({
      log: store.log,
      key,
      epoch: this.#epoch,
      limits: options,
      route: (line) => this.#router.receive(line),
      primes,
      pause: () => this.#upstream.pause(),
      resume: () => this.#upstream.resume(),
      onRefused: (cause) => this.#fail(cause),
      onHistoryLost: () => this.#drop('history_lost'),
      onFailed: (cause) => observer.failed(this.name, cause),
    });
    this.#upstream = new Upstream({
      server,
      maxQueuedBytes: options.maxQueuedBytes / 2,
      onLines: (lines) => this.#outbound.take(lines),
      onLost: (end) => this.#lost(end),
      onRestored: () => this.#restored(),
      onGivenUp: (why) => void this.end(why),
    });
    this.#inbound = new Inbound({
      calls: this.#calls,
      serverRequests: this.#serverRequests,
      upstream: this.#upstream,
      outbound: this.#outbound,
      reruns: this.#reruns,
      client: this.#client,
      limits: options,
      primes,
      onDropped: (what) => this.#drop(what),
    });
  }

  /** Passes the client's `initialize` on and answers it. The id goes out with the head of a successful answer. */
  start(reply: Reply): void {
    reply.onGone(() => {
      if (this.#handshake === undefined) void this.end('client_gone');
    });
    this.#startTimer = setTimeout(() => void this.end('server_start_timeout'), this.server.startTimeoutMs);
    const { commitAfterMs, maxEventBytes } = this.#parts.options;
    const stream = createUnloggedStream({
      onUndeliverable: () => this.#drop('undeliverable'),
      onBlocked: (isBlocked) => this.#outbound.hold(isBlocked),
    });
    const answer = new Answer(stream, {
      reply,
      ids: [idOf(this.#initialize)],
      isBatch: false,
      primes: false,
      upgradeAfterMs: commitAfterMs,
      maxEventBytes,
      headers: { 'mcp-session-id': this.id },
    });
    this.#inbound.call([this.#initialize], answer);
  }

  /** True if an array of messages is a valid body in this session. */
  get allowsBatches(): boolean {
    return allowsBatches(this.protocolVersion);
  }

  /** Passes the messages of one POST to the server and answers the POST. */
  post(messages: readonly Message[], isBatch: boolean, reply: Reply): void {
    this.#lastActivityAt = performance.now();
    this.#inbound.post(messages, isBatch, reply);
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  async listen(reply: Reply, lastEventId: EventId | undefined): Promise<void> {
    this.#lastActivityAt = performance.now();
    if (lastEventId === undefined) this.#outbound.streams.listen(reply);
    else await this.#outbound.streams.resume(reply, lastEventId);
  }

  /** True if no request is in flight and the client has sent nothing for so long. An open GET alone is no activity. */
  isIdleSince(ms: number): boolean {
    const lastActivityAt = Math.max(this.#lastActivityAt, this.#calls.emptySince);
    return this.#calls.size === 0 && performance.now() - lastActivityAt >= ms;
  }

  /** Ends calls that take too long. */
  endOverdueCalls(): void {
    this.#inbound.endOverdue();
  }

  /** Resolves when no request is in flight. */
  whenIdle(): Promise<void> {
    return this.#calls.whenEmpty();
  }

  /** Ends the session: open requests are answered, streams and the backend are closed, the record removed. Idempotent. */
  end(reason: SessionEnd): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  async #end(reason: SessionEnd): Promise<void> {
    const { key, store, observer, onEnding, onEnded } = this.#parts;
    onEnding();
    clearTimeout(this.#startTimer);
    for (const call of this.#calls.takeAll()) call.answer.fail(call.id, faultAtEnd[reason]);
    // One that fails must not keep the others, or a drain waits for ever.
    const steps = [() => this.#outbound.close(), () => this.#upstream.close(), () => store.sessions.end(key)];
    for (const step of steps) await step().catch((cause: unknown) => observer.failed(this.name, cause));
    observer.ended(this.name, { reason, dropped: this.#dropped });
    onEnded();
  }

  /** The server has answered `initialize`: only now there is a session for others to see. */
  async #initialized({ id, answer }: Call, text: Buffer): Promise<void> {
    clearTimeout(this.#startTimer);
    const handshake = readHandshake(text);
    if (handshake === undefined) {
      answer.dropHeaders();
      answer.response(id, text);
      await this.end('refused');
      return;
    }
    this.protocolVersion = handshake.protocolVersion;
    try {
      await this.#createRecord();
    } catch (cause) {
      this.#fail(cause);
    }
    if (this.#ending !== undefined) {
      answer.fail(id, 'internal');
      return;
    }
    this.#handshake = handshake;
    answer.response(id, text);
    this.#outbound.open();
    const startMs = Math.round(performance.now() - this.#startedAt);
    const { protocolVersion } = handshake;
    this.#parts.observer.started(this.name, { protocolVersion, startMs, pid: this.#upstream.pid });
  }

  async #createRecord(): Promise<void> {
    const { key, principal, instance, store } = this.#parts;
    await store.sessions.create(key, {
      server: this.server.name,
      principal,
      owner: instance,
      epoch: this.#epoch,
      initialize: this.#client.initialize,
      protocolVersion: this.protocolVersion,
    });
  }

  /** A call has its answer: what it changed or told is remembered for a restore. */
  #answered({ method, text }: Call, response: Buffer): void {
    if (text !== undefined) this.#client.answered(method, text, response);
    this.#reruns.answered(method, response);
  }

  /**
   * The backend has ended by itself. Calls that can be run again wait for the next one; the others end now, with what is
   * known (P3).
   */
  #lost(end: BackendEnd): void {
    this.#parts.observer.backendEnded(this.name, end);
    this.#outbound.finish();
    const reason = end.reason === 'line_too_long' ? 'line_too_long' : 'server_exited';
    if (this.#handshake === undefined) void this.end('server_start_failed');
    else if (this.server.onBackendExit === 'end') void this.end(reason);
    else {
      // First, so that a cancellation still finds the stream where its request went.
      for (const { destination, text } of this.#serverRequests.cancelAll()) this.#router.send(destination, text);
      // Whose answer was too long is not known, and would be again: nothing is run again then.
      const isSafe = reason !== 'line_too_long';
      for (const call of this.#calls.all()) {
        if (!(isSafe && this.#reruns.allows(call))) this.#inbound.fail(call, reason);
      }
      this.#outbound.flush();
      this.#lostCalls = this.#calls.all();
      this.#upstream.restore(this.#client, this.#handshake);
    }
  }

  /** The new backend is where the lost one was: the calls that waited are run again, and the client looks anew. */
  #restored(): void {
    for (const call of this.#lostCalls) {
      if (this.#calls.get(call.id) !== call) continue;
      call.isRerun = true;
      if (this.#upstream.send(call.text as Buffer) === 'full') this.#inbound.fail(call, 'server_busy');
    }
    this.#lostCalls = [];
    for (const method of declaredListChanges(this.#handshake as Handshake)) {
      this.#outbound.add(getStream, Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })), false);
    }
    this.#outbound.flush();
    this.#parts.observer.restored(this.name, { pid: this.#upstream.pid, losses: this.#upstream.incarnation });
  }

  #drop(what: Dropped, text?: Buffer): void {
    this.#dropped[what] = (this.#dropped[what] ?? 0) + 1;
    this.#parts.observer.dropped(this.name, what, text);
  }

  #fail(cause: unknown): void {
    if (this.#ending !== undefined) return; // the log refuses events of a session that was removed from it
    this.#parts.observer.failed(this.name, cause);
    void this.end('internal');
  }
}
