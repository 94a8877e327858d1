import type { Backend, BackendEnd } from '../backend/backend.ts';
import type { EventId } from '../protocol/event-id.ts';
import type { Reason, RequestId } from '../protocol/faults.ts';
import { negotiatedVersion } from '../protocol/handshake.ts';
import type { Message } from '../protocol/message.ts';
import { allowsBatches, assumedRevision, hasPrimingEvent } from '../protocol/revisions.ts';
import type { Principal } from '../store/store.ts';
import { Answer } from './answer.ts';
import { type Call, Calls } from './calls.ts';
import type { Dropped, SessionName } from './observer.ts';
import { Outbound } from './outbound.ts';
import type { Reply } from './reply.ts';
import { Router } from './router.ts';
import { ServerRequests } from './server-requests.ts';
import { faultAtEnd, type SessionEnd } from './session-end.ts';
import type { Server, SessionParts } from './session-parts.ts';
import { getStream } from './streams.ts';
import { createUnloggedStream } from './unlogged-stream.ts';

/**
 * One client of a legacy-era revision and its backend. Messages of the client go to the backend as they come; those of
 * the backend go to the answer or stream where they belong (P2), as the text they were written as (P1).
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
  readonly #backend: Backend;
  readonly #calls = new Calls();
  readonly #serverRequests = new ServerRequests();
  readonly #outbound: Outbound;
  readonly #dropped: Partial<Record<Dropped, number>> = {};
  readonly #startedAt = performance.now();
  /** The client's `initialize`, until it is in the record. */
  #initialize: Buffer | undefined;
  #isReady = false;
  #startTimer: NodeJS.Timeout | undefined;
  #lastActivityAt = performance.now();
  #ending: Promise<void> | undefined;

  constructor(parts: SessionParts) {
    const { id, key, server, principal, store, options } = parts;
    this.id = id;
    this.principal = principal;
    this.server = server;
    this.name = { server: server.name, session: key.slice(0, 8) };
    this.#parts = parts;
    const router = new Router({
      calls: this.#calls,
      serverRequests: this.#serverRequests,
      maxEventBytes: options.maxEventBytes,
      hasGetStream: () => this.#outbound.streams.hasGet,
      toGetStream: (text) => this.#outbound.add(getStream, text, false),
      toServer: (text) => void this.#backend.send(text),
      onInitialized: (call, text) => void this.#initialized(call, text),
      onDropped: (what, text) => this.#drop(what, text),
    });
    this.#outbound = new Outbound({
      log: store.log,
      key,
      epoch: this.#epoch,
      limits: options,
      route: (line) => router.receive(line),
      primes: () => hasPrimingEvent(this.protocolVersion),
      pause: () => this.#backend.pause(),
      resume: () => this.#backend.resume(),
      onRefused: (cause) => this.#fail(cause),
      onFailed: (cause) => this.#parts.observer.failed(this.name, cause),
    });
    this.#backend = server.open({
      onMessages: (lines) => this.#outbound.take(lines),
      onEnd: (end) => this.#backendEnded(end),
    });
  }

  /** Begins the session with the client's `initialize`. The id goes out with the head of a successful answer. */
  start(initialize: Message, reply: Reply): void {
    this.#initialize = Buffer.from(initialize.text); // not the larger buffer of the connection
    reply.onGone(() => {
      if (!this.#isReady) void this.end('client_gone');
    });
    this.#startTimer = setTimeout(() => void this.end('server_start_timeout'), this.server.startTimeoutMs);
    const { commitAfterMs, maxEventBytes } = this.#parts.options;
    const answer = new Answer(
      createUnloggedStream(() => this.#drop('undeliverable')),
      {
        reply,
        ids: [idOf(initialize)],
        isBatch: false,
        primes: false,
        upgradeAfterMs: commitAfterMs,
        maxEventBytes,
        headers: { 'mcp-session-id': this.id },
      },
    );
    this.#send([initialize], answer);
  }

  /** True if an array of messages is a valid body in this session. */
  get allowsBatches(): boolean {
    return allowsBatches(this.protocolVersion);
  }

  /** Passes the messages of one POST to the backend and answers the POST. */
  post(messages: readonly Message[], isBatch: boolean, reply: Reply): void {
    this.#lastActivityAt = performance.now();
    const requests = messages.filter((message) => message.kind === 'request');
    const ids = new Set(requests.map(idOf));
    const repeated = requests.find((request) => this.#calls.has(idOf(request)));
    if (repeated !== undefined) return reply.fault('duplicate_id', idOf(repeated));
    if (ids.size < requests.length) return reply.fault('duplicate_id', null);
    for (const message of messages) {
      if (message.kind === 'request') continue;
      const refused = this.#forward(message);
      if (refused !== undefined && requests.length === 0) return reply.fault(refused, null);
    }
    if (requests.length === 0) reply.accepted();
    else this.#send(requests, this.#createAnswer(requests.map(idOf), isBatch, reply));
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  async listen(reply: Reply, lastEventId: EventId | undefined): Promise<void> {
    this.#lastActivityAt = performance.now();
    if (lastEventId !== undefined) return this.#outbound.streams.resume(reply, lastEventId);
    this.#outbound.streams.listen(reply);
    this.#outbound.flush();
  }

  /** True if no request is in flight and the client has sent nothing for so long. An open GET alone is no activity. */
  isIdleSince(ms: number): boolean {
    const lastActivityAt = Math.max(this.#lastActivityAt, this.#calls.emptySince);
    return this.#calls.size === 0 && performance.now() - lastActivityAt >= ms;
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
    await this.#outbound.close();
    await this.#backend.close();
    await store.sessions.end(key).catch((cause: unknown) => observer.failed(this.name, cause));
    observer.ended(this.name, { reason, dropped: this.#dropped });
    onEnded();
  }

  #createAnswer(ids: readonly RequestId[], isBatch: boolean, reply: Reply): Answer {
    const { upgradeAfterMs, maxEventBytes } = this.#parts.options;
    return new Answer(
      {
        openStream: (sink, of) => this.#outbound.streams.open(sink, of),
        emit: (stream, text, last) => this.#outbound.add(stream, text, last),
        flush: () => this.#outbound.flush(),
        onUndeliverable: () => this.#drop('undeliverable'),
      },
      { reply, ids, isBatch, primes: hasPrimingEvent(this.protocolVersion), upgradeAfterMs, maxEventBytes },
    );
  }

  #send(requests: readonly Message[], answer: Answer): void {
    const calls = requests.map((request) => toCall(request, answer));
    for (const call of calls) this.#calls.add(call);
    requests.forEach((request, index) => {
      const sent = this.#backend.send(request.text);
      // `ended`: the backend is about to report its end, which answers the call with what is known then.
      if (sent === 'full') this.#failCall(calls[index] as Call, 'server_busy');
    });
  }

  /** Passes on a notification or response of the client. Returns why it could not be taken. */
  #forward(message: Message): Reason | undefined {
    if (message.kind === 'response' && !(message.id != null && this.#serverRequests.settle(message.id))) {
      this.#drop('unknown_client_response');
      return undefined;
    }
    if (message.cancels !== undefined && !this.#cancel(message.cancels)) return undefined;
    return this.#backend.send(message.text) === 'full' ? 'server_busy' : undefined;
  }

  /** Notes that the client cancels a call. False if the server must not hear of it. */
  #cancel(id: RequestId): boolean {
    const call = this.#calls.get(id);
    if (call === undefined) return true; // already answered; the server may know better, and must ignore what it does not know
    if (call.method === 'initialize') return false; // 2025-11-25, basic/utilities/cancellation: never
    call.cancelTimer ??= setTimeout(() => this.#failCall(call, 'cancelled'), this.#parts.options.cancelGraceMs);
    return true;
  }

  #failCall({ id }: Call, reason: Reason): void {
    this.#calls.take(id)?.answer.fail(id, reason);
    this.#outbound.flush();
  }

  /** The server has answered `initialize`: only now there is a session for others to see. */
  async #initialized(call: Call, text: Buffer): Promise<void> {
    clearTimeout(this.#startTimer);
    const protocolVersion = negotiatedVersion(text);
    if (protocolVersion === undefined) {
      call.answer.dropHeaders();
      call.answer.response(call.id, text);
      await this.end('refused');
      return;
    }
    this.protocolVersion = protocolVersion;
    try {
      await this.#createRecord();
    } catch (cause) {
      this.#fail(cause);
    }
    if (this.#ending !== undefined) {
      call.answer.fail(call.id, 'internal');
      return;
    }
    this.#isReady = true;
    call.answer.response(call.id, text);
    this.#outbound.open();
    const startMs = Math.round(performance.now() - this.#startedAt);
    this.#parts.observer.started(this.name, { protocolVersion, startMs, pid: this.#backend.pid });
  }

  async #createRecord(): Promise<void> {
    const { key, principal, instance, store } = this.#parts;
    const initialize = this.#initialize as Buffer;
    this.#initialize = undefined;
    await store.sessions.create(key, {
      server: this.server.name,
      principal,
      owner: instance,
      epoch: this.#epoch,
      initialize,
      protocolVersion: this.protocolVersion,
    });
  }

  #backendEnded(end: BackendEnd): void {
    this.#parts.observer.backendEnded(this.name, end, this.#isReady);
    this.#outbound.finish();
    if (end.reason === 'line_too_long') void this.end('line_too_long');
    else void this.end(this.#isReady ? 'server_exited' : 'server_start_failed');
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

const idOf = (request: Message): RequestId => request.id as RequestId;

const toCall = (request: Message, answer: Answer): Call => ({
  id: idOf(request),
  method: request.method as string,
  progressToken: request.progressToken,
  taskId: request.taskId,
  answer,
});
