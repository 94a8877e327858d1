import type { BackendEnd } from '../backend/backend.ts';
import { createCallReporter } from '../call/call-report.ts';
import { type Call, CallTable } from '../call/call-table.ts';
import type { OpeningAnswer } from '../call/legacy-answer.ts';
import { RerunPolicy } from '../call/rerun.ts';
import { declaredListChanges, type Handshake } from '../protocol/handshake.ts';
import { type Message, readGatewayMessage } from '../protocol/message/message.ts';
import { isChange } from '../protocol/modern/subscription-filter.ts';
import { hasPrimingEvent } from '../protocol/revisions.ts';
import type { Headers, Reply } from '../reply/reply.ts';
import type { Registration } from '../store/session-records.ts';
import { Activity } from './activity.ts';
import { CheckpointKeeper } from './backend/checkpoint.ts';
import { BackendSupervisor } from './backend/supervisor.ts';
import type { SessionEndReason } from './end-reason.ts';
import { EventDelivery } from './events/delivery.ts';
import type { WriteRefusal } from './events/event-writer.ts';
import { OneStream } from './events/one-stream.ts';
import { retryingLog } from './events/patient-log.ts';
import { getStream } from './events/streams.ts';
import type { Adoption } from './record/adoption.ts';
import type { ClientState } from './record/client-state.ts';
import { Attribution } from './requests/attribution.ts';
import { ClientRequests, requestId } from './requests/client-requests.ts';
import {
  failedStartReason,
  LostCalls,
  lossReason,
  readUndelivered,
  type UndeliveredMessage,
} from './requests/lost-calls.ts';
import { createOpeningAnswer } from './requests/opening-answer.ts';
import { cancellation, ServerRequests } from './requests/server-requests.ts';
import { reportFailure, type SessionDropReason, type SessionName, type SessionObserver } from './session-observer.ts';
import { observeBackends, type SessionParts } from './session-options.ts';

/** So long a session that is not restored stays for its clients to be told what became of their calls. */
const collectMs = 3_000;

/** What a conversation needs of its session. */
export interface SessionPipelineOptions {
  readonly parts: SessionParts;
  readonly name: SessionName;
  readonly epoch: number;
  readonly client: ClientState;
  /** What an earlier owner left, if there was one. */
  readonly adoption: Adoption | undefined;
  /** Aborted when nothing more is asked of the store. */
  readonly signal: AbortSignal;
  protocolVersion(): string;
  /** The response to `initialize`, and where its client is to be answered. */
  onInitialized(answer: OpeningAnswer, call: Call, response: Message): void;
  /** What the client has told its server is no longer what it was. */
  onClientChanged(): void;
  /** The log does not know the session any more: says what it is again. */
  register(): Promise<Registration>;
  /** The log takes no more events from here. */
  onRefused(why: WriteRefusal, cause: unknown): void;
  /** The server has answered a call of the client. */
  onAnswered(): void;
  /** The session cannot go on. */
  onOver(reason: SessionEndReason): void;
}

/**
 * What a client and its server say to each other. Messages of the client go to the backend as they come (`Inbound`); those
 * of the backend go to the answer or stream where they belong (`Router`), by way of the event log (`Outbound`). A backend
 * that is lost is restored (`Upstream`), also one that was lost with the instance that had it.
 */
export class SessionPipeline {
  readonly calls = new CallTable();
  readonly activity: Activity;
  readonly delivery: EventDelivery;
  readonly supervisor: BackendSupervisor;
  readonly requests: ClientRequests;
  readonly dropped: Partial<Record<SessionDropReason, number>> = {};
  readonly #options: SessionPipelineOptions;
  readonly #observer: SessionObserver;
  readonly #serverRequests = new ServerRequests();
  readonly #reruns: RerunPolicy;
  readonly #lostCalls: LostCalls;
  readonly #oneStream: OneStream | undefined;
  readonly #router: Attribution;
  readonly #place: CheckpointKeeper;
  #opening: OpeningAnswer | undefined;
  /** What the server said of itself; undefined until it has answered `initialize`. */
  #handshake: Handshake | undefined;
  /** Ends a session that is not restored. */
  #endTimer: NodeJS.Timeout | undefined;

  constructor(options: SessionPipelineOptions) {
    const { parts, epoch, client, adoption, signal, onClientChanged } = options;
    const { key, server, store, options: limits, observer } = parts;
    this.#options = options;
    this.#observer = observer;
    this.#reruns = new RerunPolicy(server.rerun);
    const { isOneStream, isGroup } = client;
    this.activity = new Activity(this.calls, this.#serverRequests, limits.requestMaxMs);
    // The gateway, as the client of a group, goes on behind a priming event whatever the revision is.
    const primes = (): boolean => !isOneStream && (isGroup || hasPrimingEvent(options.protocolVersion()));
    this.#place = new CheckpointKeeper({
      client,
      outbound: () => this.delivery,
      upstream: () => this.supervisor,
      onClientChanged,
    });
    this.#router = new Attribution({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      maxEventBytes: limits.maxEventBytes,
      isGroup: client.isGroup,
      hasGetStream: () => this.delivery.streams.hasGet,
      hasRoom: () => client.isGroup || this.delivery.hasRoom,
      toGetStream: (text) => (client.isGroup ? this.#tellGroup(text) : this.delivery.add(getStream, text, false)),
      toServer: (text) => {
        this.supervisor.send(text);
      },
      incarnation: () => this.supervisor.incarnation,
      onAnswered: (call, response) => this.#answered(call, response),
      onInitialized: (call, response) => options.onInitialized(this.#opening as OpeningAnswer, call, response),
      onDropped: (what, text) => this.drop(what, text),
      whenStored: (tell) => this.delivery.whenStored(tell),
    });
    this.delivery = new EventDelivery({
      log: retryingLog(store.log, signal),
      ...{ key, epoch, limits },
      earlier: adoption?.log,
      getCursor: client.getCursor,
      onGetCursor: (cursor) => {
        client.getCursor = cursor;
        options.onClientChanged();
      },
      route: (line) => (line.state === undefined ? this.#router.receive(line) : this.#place.note(line.state)),
      ...{ isOneStream, primes, observer: observer.streamsOf?.(server.name, options.name.session) },
      pause: () => this.supervisor.pause(),
      resume: () => this.supervisor.resume(),
      register: options.register,
      onRefused: options.onRefused,
      onHistoryLost: () => this.drop('history_lost'),
      onFault: (cause) => this.#fail(cause),
      onFailed: (cause) => reportFailure(observer, options.name, cause),
    });
    this.supervisor = new BackendSupervisor({
      ...{ server: observeBackends(observer, server, options.name), principal: parts.principal, epoch },
      isAdopted: adoption !== undefined,
      maxQueuedBytes: limits.maxQueuedBytes / 2,
      onStart: parts.onStart,
      onLines: (lines, of) => this.delivery.take(lines.map((text) => ({ text, relatedRequests: of }))),
      onUnanswered: (ids, reason, isFinal) => {
        this.delivery.finish(); // what the server said of them comes first
        this.#lostCalls.unanswered(ids, reason, isFinal);
      },
      onState: (state) => this.delivery.take([{ text: Buffer.alloc(0), relatedRequests: undefined, state }]),
      onNeeded: () => this.supervisor.restore(client, this.#handshake as Handshake),
      onLost: (end) => this.#lost(end),
      onAway: (end) => observer.backendEnded(options.name, end, { isAtStart: false }),
      onUnsent: (message) => this.#lostCalls.unsent(message),
      onRestored: () => this.#restored(),
      onGivenUp: options.onOver,
      onFault: (cause) => this.#fail(cause),
    });
    if (isOneStream) this.#oneStream = new OneStream(this.delivery, limits);
    this.requests = new ClientRequests({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      upstream: this.supervisor,
      outbound: this.delivery,
      reruns: this.#reruns,
      client,
      oneStream: this.#oneStream,
      ...{ limits, primes },
      watch: client.isGroup ? undefined : createCallReporter(observer.calls, parts.principal, options.name),
      tellsRequests: () => this.#router.identifiesRequests,
      onDropped: (what) => this.drop(what),
      onClientChanged,
    });
    this.#lostCalls = new LostCalls({
      calls: this.calls,
      reruns: this.#reruns,
      upstream: this.supervisor,
      inbound: this.requests,
      onUndeliverable: () => this.drop('undeliverable'),
    });
  }

  /**
   * Starts the server, passes `initialize` on, with the headers that came with it, and answers it.
   * @param headers of a successful answer
   */
  start(initialize: Message, reply: Reply, headers?: Headers): void {
    this.#opening = this.#oneStream?.opening(reply) ?? this.#answerTo(initialize, reply, headers);
    this.supervisor.open();
    this.requests.call([initialize], this.#opening, reply);
  }

  /** The server has answered `initialize`, and there is a log to append to. */
  open(handshake: Handshake): void {
    this.#handshake = handshake;
    this.#opening = undefined; // and with it the client's request
    this.delivery.open();
  }

  /**
   * Goes on where an earlier owner was lost: with its server's session where that outlives a connection. Else what it left
   * unanswered is answered, or run again by a new server.
   */
  adopt({ calls, questions, taken, forwarded }: Adoption, handshake: Handshake): void {
    const { client, parts, onOver } = this.#options;
    if (forwarded !== undefined) this.supervisor.rememberHeaders(forwarded);
    const place = client.backend;
    if (place !== undefined) {
      const adopted = this.requests.adopt(calls);
      this.#adoptQuestions(questions, adopted, place.isFirst);
      this.open(handshake);
      this.supervisor.attach(
        { state: place.state, pending: adopted.map(({ id }) => id), delivered: taken },
        place.isFirst,
      );
      return;
    }
    for (const { stream, id } of questions) this.delivery.add(stream, cancellation(id), false);
    for (const call of this.requests.adopt(calls)) {
      if (!this.#reruns.allows(call, 'loss')) this.requests.fail(call, 'outcome_unknown');
    }
    this.open(handshake);
    const { onBackendExit, hibernateAfterMs } = parts.server;
    const isWanted = this.calls.size > 0 || client.expectsServer;
    // What was in the process is gone; the client is to know (docs/design.md, D5). Not at once: who waits for what is in the log
    // now comes for it first.
    if (onBackendExit === 'end') this.#endTimer = setTimeout(() => onOver('server_exited'), collectMs).unref();
    // A lost instance may leave thousands of sessions whose clients do no more than listen.
    else if (hibernateAfterMs !== undefined && !isWanted) this.supervisor.hibernate();
    else this.#restore(handshake, []);
  }

  /** The session ends: what waits for its turn has to go elsewhere. */
  close(): void {
    clearTimeout(this.#endTimer);
    this.requests.close();
  }

  /** Ends the session for a fault of the gateway, and nothing else. */
  #fail(cause: unknown): void {
    reportFailure(this.#observer, this.#options.name, cause);
    this.#options.onOver('internal');
  }

  /** See `Session.strand`. */
  strand(openForMs: number): void {
    if (this.#oneStream === undefined) this.delivery.streams.detachClients(openForMs);
    else this.#oneStream.failUnanswered(openForMs);
  }

  drop(what: SessionDropReason, text?: Buffer): void {
    this.dropped[what] = (this.dropped[what] ?? 0) + 1;
    this.#observer.dropped(this.#options.name, what, text, this.#handshake === undefined);
  }

  #answerTo(initialize: Message, reply: Reply, headers?: Headers): OpeningAnswer {
    return createOpeningAnswer(requestId(initialize), reply, headers, this.#options.parts.options, {
      onUndeliverable: () => this.drop('undeliverable'),
      onBlocked: (isBlocked) => this.delivery.setPaused(isBlocked),
    });
  }

  /** A call has its answer: what it changed or told is remembered for a restore. */
  #answered({ method, text }: Call, response: Message): void {
    this.#options.onAnswered();
    if (text !== undefined && this.#options.client.answered(method, text, response)) this.#options.onClientChanged();
    this.#reruns.answered(method, response.text);
  }

  /**
   * The backend has ended by itself. Calls that can be run again wait for the next one; the others end now, with what is
   * known (P3).
   */
  #lost(end: BackendEnd): void {
    this.#observer.backendEnded(this.#options.name, end, { isAtStart: this.#handshake === undefined });
    this.delivery.finish();
    this.calls.tasks.clear();
    this.#place.forget();
    const reason = lossReason(end);
    if (this.#handshake === undefined) this.#options.onOver(failedStartReason(end));
    else if (this.#options.parts.server.onBackendExit === 'end') this.#options.onOver(reason);
    else {
      // First, so that a cancellation still finds the stream where its request went.
      for (const { destination, text } of this.#serverRequests.cancelAll()) this.#router.send(destination, text);
      const untaken = readUndelivered(end.undelivered);
      this.#lostCalls.end(reason, untaken);
      this.delivery.flush();
      this.#restore(this.#handshake, untaken);
    }
  }

  /** Starts the server again; what it has to have again waits before what the client sends from now on. */
  #restore(handshake: Handshake, untaken: readonly UndeliveredMessage[]): void {
    this.supervisor.restore(this.#options.client, handshake);
    for (const { report: watch } of this.calls.all()) watch?.awaitsStart();
    this.#lostCalls.sendAgain(untaken);
  }

  /** The server still waits for answers to its questions, where those can be told apart from another backend's. */
  #adoptQuestions(questions: Adoption['questions'], calls: readonly Call[], isFirst: boolean): void {
    for (const { stream, id } of questions) {
      const call = calls.find(({ answer }) => answer.stream === stream);
      if (isFirst) this.#serverRequests.adopt(id, call ?? 'get');
      else this.delivery.add(stream, cancellation(id), false);
    }
  }

  /** A group has no GET stream: its clients listen to changes, each to those that it asks for, and to nothing else. */
  #tellGroup(text: Buffer | undefined): void {
    const { client, parts } = this.#options;
    if (text !== undefined && !isChange(readGatewayMessage(text))) this.drop('undeliverable', text);
    else if (client.topic !== undefined) parts.options.onGroupChange?.(client.topic, text);
  }

  /** The new backend is where the lost one was: the client looks anew. */
  #restored(): void {
    const { client } = this.#options;
    for (const { report: watch } of this.calls.all()) watch?.started();
    const declared = declaredListChanges(this.#handshake as Handshake);
    if (client.isGroup) this.#tellGroup(undefined);
    else for (const change of declared) this.delivery.add(getStream, change, false);
    this.delivery.flush();
    this.#observer.restored(this.#options.name, { pid: this.supervisor.pid, ...this.supervisor.restoration });
  }
}
