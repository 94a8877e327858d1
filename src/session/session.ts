import type { Backend, BackendEnd, OpenBackend } from '../backend/backend.ts';
import type { EventId } from '../protocol/event-id.ts';
import { faultMessage, type Reason, type RequestId } from '../protocol/faults.ts';
import { type Message, readBody } from '../protocol/message.ts';
import { allowsBatches, assumedRevision, hasPrimingEvent } from '../protocol/revisions.ts';
import type { Principal, Store } from '../store/store.ts';
import { Answer } from './answer.ts';
import { type Call, Calls, type Destination } from './calls.ts';
import { createEventWriter, type EventWriter } from './event-writer.ts';
import type { Dropped, SessionEnd, SessionName, SessionObserver } from './observer.ts';
import type { Headers, Reply } from './reply.ts';
import { ServerRequests } from './server-requests.ts';
import { getStream, Streams } from './streams.ts';

/** One configured server, as sessions use it. */
export interface Server {
  readonly name: string;
  readonly open: OpenBackend;
  /** How long a new backend may take to answer `initialize`. */
  readonly startTimeoutMs: number;
}

/** Times and sizes that hold for every session; `docs/configuration.md` explains each. */
export interface SessionOptions {
  readonly upgradeAfterMs: number;
  readonly commitAfterMs: number;
  readonly cancelGraceMs: number;
  readonly retryMs: number;
  readonly slowReaderMs: number;
  readonly streamMaxAgeMs: number;
  readonly maxEventBytes: number;
  readonly logMaxEvents: number;
  readonly logMaxBytes: number;
}

/** What a session is made of. */
export interface SessionParts {
  readonly id: string;
  /** The session's name in the store: a hash of the id. */
  readonly key: string;
  readonly server: Server;
  readonly principal: Principal;
  readonly instance: string;
  readonly store: Store;
  readonly options: SessionOptions;
  readonly observer: SessionObserver;
  /** The session can no longer be used; what it started may still be ending. */
  onEnding(): void;
}

/** What clients get for their open requests when a session ends. */
const faultAtEnd: Readonly<Record<SessionEnd, Reason>> = {
  deleted: 'session_ended',
  idle: 'session_ended',
  client_gone: 'session_ended',
  refused: 'session_ended',
  server_start_failed: 'server_start_failed',
  server_start_timeout: 'server_start_timeout',
  server_exited: 'server_exited',
  line_too_long: 'line_too_long',
  draining: 'draining',
  internal: 'internal',
};

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
  readonly #writer: EventWriter;
  readonly #streams: Streams;
  readonly #dropped: Partial<Record<Dropped, number>> = {};
  readonly #startedAt = performance.now();
  #initialize: Message | undefined;
  #isReady = false;
  #startTimer: NodeJS.Timeout | undefined;
  #lastActivityAt = performance.now();
  #ending: Promise<void> | undefined;
  #idleListeners: (() => void)[] = [];

  constructor(parts: SessionParts) {
    const { id, key, server, principal, store, options } = parts;
    this.id = id;
    this.principal = principal;
    this.server = server;
    this.name = { server: server.name, session: key.slice(0, 8) };
    this.#parts = parts;
    this.#writer = createEventWriter({
      log: store.log,
      key,
      epoch: this.#epoch,
      onStored: (events) => this.#streams.deliver(events),
      onRefused: (outcome, cause) => this.#fail(new Error(`the event log answered ${outcome}`, { cause })),
    });
    this.#streams = new Streams({
      log: store.log,
      key,
      retryMs: options.retryMs,
      slowReaderMs: options.slowReaderMs,
      streamMaxAgeMs: options.streamMaxAgeMs,
      maxLag: { events: options.logMaxEvents / 2, bytes: options.logMaxBytes / 2 },
      primes: () => hasPrimingEvent(this.protocolVersion),
      emit: (stream, data, last) => this.#emit(stream, data, last),
      onPressure: (isHigh) => (isHigh ? this.#backend.pause() : this.#backend.resume()),
    });
    this.#backend = server.open({
      onMessages: (lines) => this.#receive(lines),
      onEnd: (end) => this.#backendEnded(end),
    });
  }

  /** Begins the session with the client's `initialize`. The id goes out with the head of a successful answer. */
  start(initialize: Message, reply: Reply): void {
    this.#initialize = initialize;
    reply.onGone(() => {
      if (!this.#isReady) void this.end('client_gone');
    });
    this.#startTimer = setTimeout(() => void this.end('server_start_timeout'), this.server.startTimeoutMs);
    this.#request([initialize], false, reply, this.#parts.options.commitAfterMs, { 'mcp-session-id': this.id });
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
    else this.#request(requests, isBatch, reply, this.#parts.options.upgradeAfterMs);
  }

  /** Opens the standalone GET stream, or continues the stream that `lastEventId` belongs to. */
  async listen(reply: Reply, lastEventId: EventId | undefined): Promise<void> {
    this.#lastActivityAt = performance.now();
    if (lastEventId !== undefined) return this.#streams.resume(reply, lastEventId);
    this.#streams.listen(reply);
    this.#writer.flush();
  }

  /** True if no request is in flight and the client has sent nothing for so long. An open GET alone is no activity. */
  isIdleSince(ms: number): boolean {
    return this.#calls.size === 0 && performance.now() - this.#lastActivityAt >= ms;
  }

  /** Resolves when no request is in flight, or the session ends. */
  whenIdle(): Promise<void> {
    if (this.#calls.size === 0 || this.#ending !== undefined) return Promise.resolve();
    return new Promise((resolve) => this.#idleListeners.push(resolve));
  }

  /** Ends the session: open requests are answered, streams and the backend are closed, the record removed. Idempotent. */
  end(reason: SessionEnd): Promise<void> {
    this.#ending ??= this.#end(reason);
    return this.#ending;
  }

  async #end(reason: SessionEnd): Promise<void> {
    const { key, store, observer, onEnding } = this.#parts;
    onEnding();
    clearTimeout(this.#startTimer);
    for (const call of this.#calls.takeAll()) call.answer.fail(call.id, faultAtEnd[reason]);
    this.#tellIdle();
    this.#writer.flush();
    await this.#writer.settled();
    this.#streams.closeAll();
    await this.#backend.close();
    await store.sessions.end(key).catch((cause: unknown) => observer.failed(this.name, cause));
    observer.ended(this.name, { reason, dropped: this.#dropped });
  }

  #request(
    requests: readonly Message[],
    isBatch: boolean,
    reply: Reply,
    upgradeAfterMs: number,
    headers?: Headers,
  ): void {
    const answer = new Answer(
      {
        openStream: (sink, ids) => this.#streams.open(sink, ids),
        emit: (stream, text, last) => this.#emit(stream, text, last),
        flush: () => this.#writer.flush(),
        onUndeliverable: () => this.#drop('undeliverable'),
      },
      {
        reply,
        ids: requests.map(idOf),
        isBatch,
        primes: headers === undefined && hasPrimingEvent(this.protocolVersion),
        upgradeAfterMs,
        maxEventBytes: this.#parts.options.maxEventBytes,
        ...(headers && { headers }),
      },
    );
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
    this.#writer.flush();
    this.#tellIdle();
  }

  #receive(lines: readonly Buffer[]): void {
    for (const line of lines) {
      const body = readBody(line, Number.POSITIVE_INFINITY);
      const messages = body.ok ? body.messages : [];
      if (messages.length === 0) this.#drop('noise', line);
      for (const read of messages) {
        if (read.ok) this.#route(read.message);
        else this.#drop('noise', line);
      }
    }
    this.#writer.flush();
  }

  #route(message: Message): void {
    if (message.kind === 'response') {
      this.#routeResponse(message);
      return;
    }
    const destination =
      this.#serverRequests.cancelledBy(message) ?? this.#calls.attribute(message, this.#streams.hasGet);
    if (!this.#admit(message, destination)) return;
    if (destination === 'get') this.#emit(getStream, message.text, false);
    else destination.answer.message(message.text);
  }

  #routeResponse({ id, text }: Message): void {
    const call = id == null ? undefined : this.#calls.take(id);
    if (call === undefined) this.#drop('unknown_response', text);
    else if (call.method === 'initialize') void this.#initialized(call, text);
    else call.answer.response(call.id, text);
    if (this.#calls.size === 0) this.#tellIdle();
  }

  /** False if a message of the server cannot be passed on; a request is answered, so that the server does not wait. */
  #admit(message: Message, destination: Destination): boolean {
    const isTooLarge = message.text.length > this.#parts.options.maxEventBytes;
    if (isTooLarge) this.#drop('oversized');
    if (message.kind !== 'request' || message.id == null) return !isTooLarge;
    const refusal = isTooLarge
      ? Buffer.from(faultMessage('server_request_refused', message.id))
      : this.#serverRequests.add(message.id, destination);
    if (refusal !== undefined) this.#backend.send(refusal);
    return refusal === undefined;
  }

  /** The server has answered `initialize`: only now the session exists for others, and its id may go out as usable. */
  async #initialized(call: Call, text: Buffer): Promise<void> {
    clearTimeout(this.#startTimer);
    const protocolVersion = negotiatedVersion(text);
    if (protocolVersion === undefined) {
      call.answer.dropHeaders();
      call.answer.response(call.id, text);
      await this.end('refused');
      return;
    }
    const { key, principal, instance, store, observer } = this.#parts;
    const initialize = Buffer.from((this.#initialize as Message).text);
    this.protocolVersion = protocolVersion;
    try {
      await store.sessions.create(key, {
        server: this.server.name,
        principal,
        owner: instance,
        epoch: this.#epoch,
        initialize,
        protocolVersion,
      });
    } catch (cause) {
      call.answer.fail(call.id, 'internal');
      this.#fail(cause);
      return;
    }
    this.#isReady = !call.answer.isLost;
    call.answer.response(call.id, text);
    this.#writer.flush();
    const startMs = Math.round(performance.now() - this.#startedAt);
    observer.started(this.name, { protocolVersion, startMs, pid: this.#backend.pid });
  }

  #backendEnded(end: BackendEnd): void {
    this.#parts.observer.backendEnded(this.name, end, this.#isReady);
    if (end.reason === 'line_too_long') void this.end('line_too_long');
    else void this.end(this.#isReady ? 'server_exited' : 'server_start_failed');
  }

  #emit(stream: number, data: Buffer, last: boolean): void {
    this.#writer.add(stream, data, last);
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

  #tellIdle(): void {
    const listeners = this.#idleListeners;
    this.#idleListeners = [];
    for (const listener of listeners) listener();
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

/** The revision in a response to `initialize`; undefined if it is an error or names none. */
function negotiatedVersion(response: Buffer): string | undefined {
  const { result } = JSON.parse(response.toString()) as { result?: { protocolVersion?: unknown } | null };
  return typeof result?.protocolVersion === 'string' ? result.protocolVersion : undefined;
}
