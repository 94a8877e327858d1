import type { BackendEnd, QueuedMessage } from '../backend/backend.ts';
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
import { failedStartReason, LostCalls, lossReason } from './requests/lost-calls.ts';
import { createOpeningAnswer } from './requests/opening-answer.ts';
import { cancellation, ServerRequests } from './requests/server-requests.ts';
import { reportFailure, type SessionDropReason, type SessionName, type SessionTelemetry } from './session-events.ts';
import type { SessionParts } from './session-options.ts';

/** How long a session that is not restored stays, so that clients can learn the outcome of their calls. */
const collectMs = 3_000;

/** Options of `SessionPipeline`. */
export interface SessionPipelineOptions {
  readonly parts: SessionParts;
  readonly name: SessionName;
  readonly epoch: number;
  readonly client: ClientState;
  /** The state that an earlier owner left, if there was one. */
  readonly adoption: Adoption | undefined;
  /** Aborted when the store is no longer used. */
  readonly signal: AbortSignal;
  protocolVersion(): string;
  /** The response to `initialize`, and the answer that its client waits for. */
  onInitialized(answer: OpeningAnswer, call: Call, response: Message): void;
  /** The state that the client has set at its server has changed. */
  onClientChanged(): void;
  /** Registers the session again, because the log does not know it any more. */
  register(): Promise<Registration>;
  /** The log takes no more events from here. */
  onRefused(why: WriteRefusal, cause: unknown): void;
  /** The server has answered a call of the client. */
  onAnswered(): void;
  /** The session cannot go on. */
  onOver(reason: SessionEndReason): void;
}

/**
 * The way of messages between a client and its server. Client messages go to the backend as they come
 * (`ClientRequests`). Server messages go to their answer or stream (`Attribution`) through the event log
 * (`EventDelivery`). A lost backend is restored (`BackendSupervisor`), also after the loss of its instance.
 */
export class SessionPipeline {
  readonly calls = new CallTable();
  readonly activity: Activity;
  readonly delivery: EventDelivery;
  readonly supervisor: BackendSupervisor;
  readonly requests: ClientRequests;
  readonly dropped: Partial<Record<SessionDropReason, number>> = {};
  readonly #options: SessionPipelineOptions;
  readonly #telemetry: SessionTelemetry;
  readonly #serverRequests = new ServerRequests();
  readonly #reruns: RerunPolicy;
  readonly #lostCalls: LostCalls;
  readonly #oneStream: OneStream | undefined;
  readonly #attribution: Attribution;
  readonly #checkpoint: CheckpointKeeper;
  #opening: OpeningAnswer | undefined;
  /** The server's answer to `initialize`; undefined before. */
  #handshake: Handshake | undefined;
  /** Ends a session that is not restored. */
  #endTimer: NodeJS.Timeout | undefined;

  constructor(options: SessionPipelineOptions) {
    const { parts, epoch, client, adoption, signal, onClientChanged } = options;
    const { key, server, store, options: limits, telemetry } = parts;
    this.#options = options;
    this.#telemetry = telemetry;
    this.#reruns = new RerunPolicy(server.rerun);
    const { isOneStream, isGroup } = client;
    this.activity = new Activity(this.calls, this.#serverRequests, limits.requestMaxMs);
    // The gateway is the client of a group. It resumes after a priming event in every revision.
    const primes = (): boolean => !isOneStream && (isGroup || hasPrimingEvent(options.protocolVersion()));
    this.#checkpoint = new CheckpointKeeper({
      client,
      delivery: () => this.delivery,
      supervisor: () => this.supervisor,
      onClientChanged,
    });
    this.#attribution = new Attribution({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      maxEventBytes: limits.maxEventBytes,
      isGroup: client.isGroup,
      hasGetStream: () => this.delivery.streams.hasGet,
      hasRoom: () => client.isGroup || this.delivery.hasRoom,
      toGetStream: (text) => (client.isGroup ? this.#notifyGroup(text) : this.delivery.add(getStream, text, false)),
      toServer: (message) => {
        this.supervisor.send(message);
      },
      incarnation: () => this.supervisor.incarnation,
      onAnswered: (call, response) => this.#onAnswered(call, response),
      onInitialized: (call, response) => options.onInitialized(this.#opening as OpeningAnswer, call, response),
      onDropped: (what, text) => this.drop(what, text),
      whenStored: (onStored) => this.delivery.whenStored(onStored),
    });
    this.delivery = new EventDelivery({
      log: retryingLog(store.log, signal),
      key,
      epoch,
      limits,
      earlier: adoption?.log,
      getCursor: client.getCursor,
      onGetCursor: (cursor) => {
        client.getCursor = cursor;
        options.onClientChanged();
      },
      route: (output) =>
        'state' in output
          ? this.#checkpoint.note(output.state)
          : this.#attribution.receive(output.message, output.relatedRequests),
      isOneStream,
      primes,
      telemetry,
      name: options.name,
      pause: () => this.supervisor.pause(),
      resume: () => this.supervisor.resume(),
      register: options.register,
      onRefused: options.onRefused,
      onHistoryLost: () => this.drop('history_lost'),
      onFault: (cause) => this.#fail(cause),
      onFailed: (cause) => reportFailure(telemetry.emit, options.name, cause),
    });
    this.supervisor = new BackendSupervisor({
      server,
      session: options.name.session,
      principal: parts.principal,
      epoch,
      isAdopted: adoption !== undefined,
      maxQueuedBytes: limits.maxQueuedBytes / 2,
      onStart: parts.onStart,
      onMessages: (messages, relatedRequests) =>
        this.delivery.take(messages.map((message) => ({ message, relatedRequests }))),
      onNoise: (text) => this.drop('noise', text),
      onUnanswered: (ids, reason, isFinal) => {
        this.delivery.finish(); // earlier messages of the server come first
        this.#lostCalls.unanswered(ids, reason, isFinal);
      },
      onState: (state) => this.delivery.take([{ state }]),
      onNeeded: () => this.supervisor.restore(client, this.#handshake as Handshake),
      onLost: (end) => this.#onLost(end),
      onAway: (end) => telemetry.emit({ type: 'backend-ended', name: options.name, end, isAtStart: false }),
      onUnsent: (message) => this.#lostCalls.unsent(message),
      onRestored: () => this.#onRestored(),
      onGivenUp: options.onOver,
      onFault: (cause) => this.#fail(cause),
    });
    if (isOneStream) this.#oneStream = new OneStream(this.delivery, limits);
    this.requests = new ClientRequests({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      supervisor: this.supervisor,
      delivery: this.delivery,
      reruns: this.#reruns,
      client,
      oneStream: this.#oneStream,
      limits,
      primes,
      createReport: client.isGroup ? undefined : createCallReporter(telemetry.calls, parts.principal, options.name),
      identifiesRequests: () => this.#attribution.identifiesRequests,
      onDropped: (what) => this.drop(what),
      onClientChanged,
    });
    this.#lostCalls = new LostCalls({
      calls: this.calls,
      reruns: this.#reruns,
      supervisor: this.supervisor,
      requests: this.requests,
      onUndeliverable: () => this.drop('undeliverable'),
    });
  }

  /**
   * Starts the server, passes `initialize` on with its headers, and answers it.
   * @param headers of a successful answer
   */
  start(initialize: Message, reply: Reply, headers?: Headers): void {
    this.#opening = this.#oneStream?.opening(reply) ?? this.#answerTo(initialize, reply, headers);
    this.supervisor.open();
    this.requests.call([initialize], this.#opening, reply);
  }

  /** The server has answered `initialize`, and events can be appended to the log. */
  open(handshake: Handshake): void {
    this.#handshake = handshake;
    this.#opening = undefined; // frees the client's request too
    this.delivery.open();
  }

  /**
   * Continues a session whose owner was lost. If the server's session outlives a connection, that session is resumed.
   * Otherwise unanswered calls are answered, or run again by a new server.
   */
  adopt({ calls, serverRequests, afterCheckpoint, forwarded }: Adoption, handshake: Handshake): void {
    const { client, parts, onOver } = this.#options;
    if (forwarded !== undefined) this.supervisor.rememberHeaders(forwarded);
    const checkpoint = client.backend;
    if (checkpoint !== undefined) {
      const adopted = this.requests.adopt(calls);
      this.#adoptServerRequests(serverRequests, adopted, checkpoint.isFirst);
      this.open(handshake);
      this.supervisor.attach(
        { state: checkpoint.state, pending: adopted.map(({ id }) => id), delivered: afterCheckpoint },
        checkpoint.isFirst,
      );
      return;
    }
    for (const { stream, id } of serverRequests) this.delivery.add(stream, cancellation(id), false);
    for (const call of this.requests.adopt(calls)) {
      if (!this.#reruns.allows(call, 'loss')) this.requests.fail(call, 'outcome_unknown');
    }
    this.open(handshake);
    const { onBackendExit, hibernateAfterMs } = parts.server;
    const isNeeded = this.calls.size > 0 || client.expectsServer;
    // The state in the lost process is gone, and the client has to know (docs/design.md, D5). The end is delayed, so
    // that clients can first fetch the answers that are in the log.
    if (onBackendExit === 'end') this.#endTimer = setTimeout(() => onOver('server_exited'), collectMs).unref();
    // A lost instance may leave thousands of sessions whose clients only listen.
    else if (hibernateAfterMs !== undefined && !isNeeded) this.supervisor.hibernate();
    else this.#restore(handshake, []);
  }

  /** The session ends. Requests that wait at the input gate go to another session. */
  close(): void {
    clearTimeout(this.#endTimer);
    this.requests.close();
  }

  /** Ends this session alone, for a fault of the gateway. */
  #fail(cause: unknown): void {
    reportFailure(this.#telemetry.emit, this.#options.name, cause);
    this.#options.onOver('internal');
  }

  /** See `Session.detachClients`. */
  detachClients(openForMs: number): void {
    if (this.#oneStream === undefined) this.delivery.streams.detachClients(openForMs);
    else this.#oneStream.failUnanswered(openForMs);
  }

  drop(reason: SessionDropReason, text?: Buffer): void {
    this.dropped[reason] = (this.dropped[reason] ?? 0) + 1;
    const isAtStart = this.#handshake === undefined;
    this.#telemetry.emit({ type: 'session-message-dropped', name: this.#options.name, reason, text, isAtStart });
  }

  #answerTo(initialize: Message, reply: Reply, headers?: Headers): OpeningAnswer {
    return createOpeningAnswer(requestId(initialize), reply, headers, this.#options.parts.options, {
      onUndeliverable: () => this.drop('undeliverable'),
      onBlocked: (isBlocked) => this.delivery.setPaused(isBlocked),
    });
  }

  /** A call has its answer. The state that the call changed is kept for a restore. */
  #onAnswered({ method, request }: Call, response: Message): void {
    this.#options.onAnswered();
    if (request !== undefined && this.#options.client.noteAnswered(method, request.text, response))
      this.#options.onClientChanged();
    this.#reruns.answered(method, response.text);
  }

  /**
   * The backend has ended by itself. Calls that can be run again wait for the next backend. The others end now with the
   * known outcome (P3).
   */
  #onLost(end: BackendEnd): void {
    const isAtStart = this.#handshake === undefined;
    this.#telemetry.emit({ type: 'backend-ended', name: this.#options.name, end, isAtStart });
    this.delivery.finish();
    this.calls.tasks.clear();
    this.#checkpoint.forget();
    const reason = lossReason(end);
    if (this.#handshake === undefined) this.#options.onOver(failedStartReason(end));
    else if (this.#options.parts.server.onBackendExit === 'end') this.#options.onOver(reason);
    else {
      // Cancellations come first, while the stream of each server request can still be found.
      for (const { destination, text } of this.#serverRequests.cancelAll()) this.#attribution.send(destination, text);
      const { undelivered = [] } = end;
      this.#lostCalls.end(reason, undelivered);
      this.delivery.flush();
      this.#restore(this.#handshake, undelivered);
    }
  }

  /** Starts the server again. Undelivered messages and reruns are queued before new messages of the client. */
  #restore(handshake: Handshake, undelivered: readonly QueuedMessage[]): void {
    this.supervisor.restore(this.#options.client, handshake);
    for (const { report } of this.calls.all()) report?.awaitsStart();
    this.#lostCalls.sendAgain(undelivered);
  }

  /**
   * Restores the server's open requests, if their ids cannot be confused with those of another backend. Other requests
   * are cancelled.
   */
  #adoptServerRequests(serverRequests: Adoption['serverRequests'], calls: readonly Call[], isFirst: boolean): void {
    for (const { stream, id } of serverRequests) {
      const call = calls.find(({ answer }) => answer.stream === stream);
      if (isFirst) this.#serverRequests.adopt(id, call ?? 'get');
      else this.delivery.add(stream, cancellation(id), false);
    }
  }

  /** A group has no GET stream. Its clients listen to chosen changes and to nothing else. */
  #notifyGroup(text: Buffer | undefined): void {
    const { client, parts } = this.#options;
    if (text !== undefined && !isChange(readGatewayMessage(text))) this.drop('undeliverable', text);
    else if (client.topic !== undefined) parts.options.onGroupChange?.(client.topic, text);
  }

  /** The new backend has replaced the lost one. The client is told to refresh its lists. */
  #onRestored(): void {
    const { client } = this.#options;
    for (const { report } of this.calls.all()) report?.started();
    const declared = declaredListChanges(this.#handshake as Handshake);
    if (client.isGroup) this.#notifyGroup(undefined);
    else for (const change of declared) this.delivery.add(getStream, change, false);
    this.delivery.flush();
    const { pid, restoration } = this.supervisor;
    this.#telemetry.emit({ type: 'backend-restored', name: this.#options.name, pid, restoration });
  }
}
