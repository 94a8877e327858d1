import type { BackendEnd, Parcel, RequestIds } from '../backend/backend.ts';
import type { Reason } from '../protocol/faults.ts';
import type { ForwardedHeaders } from '../protocol/forwarded-headers.ts';
import { declaredListChanges, type Handshake } from '../protocol/handshake.ts';
import { type Message, readBody } from '../protocol/message.ts';
import { hasPrimingEvent } from '../protocol/revisions.ts';
import type { Registration } from '../store/session-records.ts';
import type { Adoption } from './adoption.ts';
import type { Answer } from './answer.ts';
import { type Call, Calls } from './calls.ts';
import type { ClientState } from './client-state.ts';
import type { Refusal } from './event-writer.ts';
import { Inbound, idOf } from './inbound.ts';
import type { Dropped, SessionName, SessionObserver } from './observer.ts';
import { Outbound } from './outbound.ts';
import { patientLog } from './patient-log.ts';
import { Reruns } from './rerun.ts';
import { Router } from './router.ts';
import { cancellationOf, ServerRequests } from './server-requests.ts';
import type { SessionEnd } from './session-end.ts';
import type { SessionParts } from './session-parts.ts';
import { getStream } from './streams.ts';
import { Upstream } from './upstream.ts';

/** So long a session that is not restored stays for its clients to be told what became of their calls. */
const collectMs = 3_000;

/** What a conversation needs of its session. */
export interface ConversationOptions {
  readonly parts: SessionParts;
  readonly name: SessionName;
  readonly epoch: number;
  readonly client: ClientState;
  /** What an earlier owner left, if there was one. */
  readonly adoption: Adoption | undefined;
  /** Aborted when nothing more is asked of the store. */
  readonly signal: AbortSignal;
  protocolVersion(): string;
  /** The response to `initialize`. */
  onInitialized(call: Call, text: Buffer): void;
  /** What the client has told its server is no longer what it was. */
  onClientChanged(): void;
  /** The log does not know the session any more: says what it is again. */
  register(): Promise<Registration>;
  /** The log takes no more events from here. */
  onRefused(why: Refusal, cause: unknown): void;
  /** The session cannot go on. */
  onOver(reason: SessionEnd): void;
}

/**
 * What a client and its server say to each other. Messages of the client go to the backend as they come (`Inbound`); those
 * of the backend go to the answer or stream where they belong (`Router`), by way of the event log (`Outbound`). A backend
 * that is lost is restored (`Upstream`), also one that was lost with the instance that had it.
 */
export class Conversation {
  readonly calls = new Calls();
  readonly outbound: Outbound;
  readonly upstream: Upstream;
  readonly inbound: Inbound;
  readonly dropped: Partial<Record<Dropped, number>> = {};
  readonly #options: ConversationOptions;
  readonly #observer: SessionObserver;
  readonly #serverRequests = new ServerRequests();
  readonly #reruns: Reruns;
  readonly #router: Router;
  /** What the server said of itself; undefined until it has answered `initialize`. */
  #handshake: Handshake | undefined;

  constructor(options: ConversationOptions) {
    const { parts, epoch, client, adoption, signal } = options;
    const { key, server, store, options: limits, observer } = parts;
    this.#options = options;
    this.#observer = observer;
    this.#reruns = new Reruns(server.rerun);
    const primes = (): boolean => hasPrimingEvent(options.protocolVersion());
    this.#router = new Router({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      maxEventBytes: limits.maxEventBytes,
      hasGetStream: () => this.outbound.streams.hasGet,
      hasRoom: () => this.outbound.hasRoom,
      toGetStream: (text) => this.outbound.add(getStream, text, false),
      toServer: (text) => void this.upstream.send(text),
      incarnation: () => this.upstream.incarnation,
      onAnswered: (call, response) => this.#answered(call, response),
      onInitialized: options.onInitialized,
      onDropped: (what, text) => this.drop(what, text),
    });
    this.outbound = new Outbound({
      log: patientLog(store.log, signal),
      key,
      epoch,
      limits,
      earlier: adoption?.log,
      getCursor: client.getCursor,
      onGetCursor: (cursor) => {
        client.getCursor = cursor;
        options.onClientChanged();
      },
      route: (line) => this.#router.receive(line),
      primes,
      pause: () => this.upstream.pause(),
      resume: () => this.upstream.resume(),
      register: options.register,
      onRefused: options.onRefused,
      onHistoryLost: () => this.drop('history_lost'),
      onFailed: (cause) => observer.failed(options.name, cause),
    });
    this.upstream = new Upstream({
      server,
      epoch,
      isAdopted: adoption !== undefined,
      maxQueuedBytes: limits.maxQueuedBytes / 2,
      onLines: (lines, of) => this.outbound.take(lines.map((text) => ({ text, of }))),
      onUnanswered: (ids, reason) => this.#unanswered(ids, reason),
      onLost: (end) => this.#lost(end),
      onAway: (end) => observer.backendEnded(options.name, end),
      onUnsent: (message) => this.#unsent(message),
      onRestored: () => this.#restored(),
      onGivenUp: options.onOver,
    });
    this.inbound = new Inbound({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      upstream: this.upstream,
      outbound: this.outbound,
      reruns: this.#reruns,
      client,
      limits,
      primes,
      onDropped: (what) => this.drop(what),
      onClientChanged: options.onClientChanged,
    });
  }

  /** Starts the server and passes `initialize` on, with the headers that came with it. */
  start(initialize: Message, answer: Answer, forwarded: ForwardedHeaders | undefined): void {
    this.upstream.open();
    this.inbound.call([initialize], answer, forwarded);
  }

  /** The server has answered `initialize`, and there is a log to append to. */
  open(handshake: Handshake): void {
    this.#handshake = handshake;
    this.outbound.open();
  }

  /** Goes on where an earlier owner was lost: what it left unanswered is answered, or run again by a new server. */
  adopt({ calls, questions, forwarded }: Adoption, handshake: Handshake): void {
    if (forwarded !== undefined) this.upstream.hear(forwarded);
    for (const { stream, id } of questions) this.outbound.add(stream, cancellationOf(id), false);
    for (const call of this.inbound.adopt(calls)) {
      if (!this.#reruns.allows(call)) this.inbound.fail(call, 'outcome_unknown');
    }
    this.open(handshake);
    // What was in the process is gone; the client is to know (DESIGN decision 5).
    if (this.#options.parts.server.onBackendExit === 'end') {
      // Not at once: clients that wait for what is in the log now come for it first.
      setTimeout(() => this.#options.onOver('server_exited'), collectMs);
      return;
    }
    this.#restore(handshake, []);
  }

  drop(what: Dropped, text?: Buffer): void {
    this.dropped[what] = (this.dropped[what] ?? 0) + 1;
    this.#observer.dropped(this.#options.name, what, text);
  }

  /** A call has its answer: what it changed or told is remembered for a restore. */
  #answered({ method, text }: Call, response: Buffer): void {
    if (text !== undefined && this.#options.client.answered(method, text, response)) this.#options.onClientChanged();
    this.#reruns.answered(method, response);
  }

  /**
   * The backend has ended by itself. Calls that can be run again wait for the next one; the others end now, with what is
   * known (P3).
   */
  #lost(end: BackendEnd): void {
    this.#observer.backendEnded(this.#options.name, end);
    this.outbound.finish();
    const reason = end.reason === 'line_too_long' ? 'line_too_long' : 'server_exited';
    if (this.#handshake === undefined) this.#options.onOver('server_start_failed');
    else if (this.#options.parts.server.onBackendExit === 'end') this.#options.onOver(reason);
    else {
      // First, so that a cancellation still finds the stream where its request went.
      for (const { destination, text } of this.#serverRequests.cancelAll()) this.#router.send(destination, text);
      // Whose answer was too long is not known, and would be again: nothing is run again then.
      const isSafe = reason !== 'line_too_long';
      const untaken = (end.untaken ?? []).flatMap(readParcel);
      const waiting = new Set(untaken.map(({ id }) => id));
      for (const call of this.calls.all()) {
        if (!waiting.has(call.id) && !(isSafe && this.#reruns.allows(call))) this.inbound.fail(call, reason);
      }
      this.outbound.flush();
      this.#restore(this.#handshake, untaken);
    }
  }

  /**
   * Starts the server again. What the lost one did not take, and the calls that are left, to be run again, wait before what
   * the client sends from now on. Answers are for the backend that asked alone.
   */
  #restore(handshake: Handshake, untaken: readonly ReadParcel[]): void {
    this.upstream.restore(this.#options.client, handshake);
    for (const { kind, text, id, headers } of untaken) {
      const call = id == null ? undefined : this.calls.get(id);
      if (kind === 'request' ? call !== undefined : kind === 'notification') this.#sendAgain(text, headers, call);
    }
    for (const call of this.calls.all()) if (!untaken.some(({ id }) => id === call.id)) this.#rerun(call);
  }

  #rerun(call: Call): void {
    call.isRerun = true;
    this.#sendAgain(call.text as Buffer, call.forwarded, call);
  }

  #sendAgain(text: Buffer, headers: ForwardedHeaders | undefined, call: Call | undefined): void {
    if (this.upstream.send(text, headers) === 'full' && call !== undefined) this.inbound.fail(call, 'server_busy');
  }

  /** The server will not answer these calls, and goes on: those that can be are run again (P3). */
  #unanswered(ids: RequestIds, reason: Reason): void {
    this.outbound.finish(); // what the server said of them comes first
    for (const call of ids.map((id) => this.calls.get(id)).filter((found) => found !== undefined)) {
      if (reason === 'server_unreachable' && this.#reruns.allows(call)) this.#rerun(call);
      else this.inbound.fail(call, reason);
    }
  }

  /** The server was away for too long for this message. */
  #unsent(message: Message | undefined): void {
    const call = message?.kind === 'request' ? this.calls.get(idOf(message)) : undefined;
    if (call !== undefined) this.inbound.fail(call, 'server_unreachable');
    else this.drop('undeliverable');
  }

  /** The new backend is where the lost one was: the client looks anew. */
  #restored(): void {
    for (const method of declaredListChanges(this.#handshake as Handshake)) {
      this.outbound.add(getStream, Buffer.from(JSON.stringify({ jsonrpc: '2.0', method })), false);
    }
    this.outbound.flush();
    this.#observer.restored(this.#options.name, { pid: this.upstream.pid, losses: this.upstream.losses });
  }
}

type ReadParcel = Message & Pick<Parcel, 'headers'>;

function readParcel({ message, headers }: Parcel): ReadParcel[] {
  const read = readBody(Buffer.from(message), Number.POSITIVE_INFINITY);
  return read.ok ? read.messages.flatMap((each) => (each.ok ? [{ ...each.message, headers }] : [])) : [];
}
