import type { BackendEnd } from '../backend/backend.ts';
import { watcherFor } from '../call/call-report.ts';
import { type Call, Calls } from '../call/call-table.ts';
import type { OpeningAnswer } from '../call/legacy-answer.ts';
import { Reruns } from '../call/rerun.ts';
import { declaredListChanges, type Handshake } from '../protocol/handshake.ts';
import { type Message, readOwn } from '../protocol/message/message.ts';
import { isChange } from '../protocol/modern/subscription-filter.ts';
import { hasPrimingEvent } from '../protocol/revisions.ts';
import type { Headers, Reply } from '../reply/reply.ts';
import type { Registration } from '../store/session-records.ts';
import { Activity } from './activity.ts';
import { PlaceKeeper } from './backend/checkpoint.ts';
import { Upstream } from './backend/supervisor.ts';
import type { SessionEnd } from './end-reason.ts';
import { Outbound } from './events/delivery.ts';
import type { Refusal } from './events/event-writer.ts';
import { OneStream } from './events/one-stream.ts';
import { patientLog } from './events/patient-log.ts';
import { getStream } from './events/streams.ts';
import type { Adoption } from './record/adoption.ts';
import type { ClientState } from './record/client-state.ts';
import { Router } from './requests/attribution.ts';
import { Inbound, idOf } from './requests/client-requests.ts';
import { LostCalls, readUntaken, reasonOfFailedStart, reasonOfLoss, type Untaken } from './requests/lost-calls.ts';
import { createOpeningAnswer } from './requests/opening-answer.ts';
import { cancellationOf, ServerRequests } from './requests/server-requests.ts';
import { type Dropped, type SessionName, type SessionObserver, tellFailure } from './session-observer.ts';
import { type SessionParts, seenBy } from './session-options.ts';

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
  /** The response to `initialize`, and where its client is to be answered. */
  onInitialized(answer: OpeningAnswer, call: Call, response: Message): void;
  /** What the client has told its server is no longer what it was. */
  onClientChanged(): void;
  /** The log does not know the session any more: says what it is again. */
  register(): Promise<Registration>;
  /** The log takes no more events from here. */
  onRefused(why: Refusal, cause: unknown): void;
  /** The server has answered a call of the client. */
  onAnswered(): void;
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
  readonly activity: Activity;
  readonly outbound: Outbound;
  readonly upstream: Upstream;
  readonly inbound: Inbound;
  readonly dropped: Partial<Record<Dropped, number>> = {};
  readonly #options: ConversationOptions;
  readonly #observer: SessionObserver;
  readonly #serverRequests = new ServerRequests();
  readonly #reruns: Reruns;
  readonly #lostCalls: LostCalls;
  readonly #oneStream: OneStream | undefined;
  readonly #router: Router;
  readonly #place: PlaceKeeper;
  #opening: OpeningAnswer | undefined;
  /** What the server said of itself; undefined until it has answered `initialize`. */
  #handshake: Handshake | undefined;
  /** Ends a session that is not restored. */
  #endTimer: NodeJS.Timeout | undefined;

  constructor(options: ConversationOptions) {
    const { parts, epoch, client, adoption, signal, onClientChanged } = options;
    const { key, server, store, options: limits, observer } = parts;
    this.#options = options;
    this.#observer = observer;
    this.#reruns = new Reruns(server.rerun);
    const { isOneStream, isGroup } = client;
    this.activity = new Activity(this.calls, this.#serverRequests, limits.requestMaxMs);
    // The gateway, as the client of a group, goes on behind a priming event whatever the revision is.
    const primes = (): boolean => !isOneStream && (isGroup || hasPrimingEvent(options.protocolVersion()));
    this.#place = new PlaceKeeper({
      client,
      outbound: () => this.outbound,
      upstream: () => this.upstream,
      onClientChanged,
    });
    this.#router = new Router({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      maxEventBytes: limits.maxEventBytes,
      isGroup: client.isGroup,
      hasGetStream: () => this.outbound.streams.hasGet,
      hasRoom: () => client.isGroup || this.outbound.hasRoom,
      toGetStream: (text) => (client.isGroup ? this.#tellGroup(text) : this.outbound.add(getStream, text, false)),
      toServer: (text) => {
        this.upstream.send(text);
      },
      incarnation: () => this.upstream.incarnation,
      onAnswered: (call, response) => this.#answered(call, response),
      onInitialized: (call, response) => options.onInitialized(this.#opening as OpeningAnswer, call, response),
      onDropped: (what, text) => this.drop(what, text),
      whenStored: (tell) => this.outbound.whenStored(tell),
    });
    this.outbound = new Outbound({
      log: patientLog(store.log, signal),
      ...{ key, epoch, limits },
      earlier: adoption?.log,
      getCursor: client.getCursor,
      onGetCursor: (cursor) => {
        client.getCursor = cursor;
        options.onClientChanged();
      },
      route: (line) => (line.state === undefined ? this.#router.receive(line) : this.#place.note(line.state)),
      ...{ isOneStream, primes, observer: observer.streamsOf?.(server.name, options.name.session) },
      pause: () => this.upstream.pause(),
      resume: () => this.upstream.resume(),
      register: options.register,
      onRefused: options.onRefused,
      onHistoryLost: () => this.drop('history_lost'),
      onFault: (cause) => this.#fail(cause),
      onFailed: (cause) => tellFailure(observer, options.name, cause),
    });
    this.upstream = new Upstream({
      ...{ server: seenBy(observer, server, options.name), principal: parts.principal, epoch },
      isAdopted: adoption !== undefined,
      maxQueuedBytes: limits.maxQueuedBytes / 2,
      onStart: parts.onStart,
      onLines: (lines, of) => this.outbound.take(lines.map((text) => ({ text, of }))),
      onUnanswered: (ids, reason, isFinal) => {
        this.outbound.finish(); // what the server said of them comes first
        this.#lostCalls.unanswered(ids, reason, isFinal);
      },
      onState: (state) => this.outbound.take([{ text: Buffer.alloc(0), of: undefined, state }]),
      onNeeded: () => this.upstream.restore(client, this.#handshake as Handshake),
      onLost: (end) => this.#lost(end),
      onAway: (end) => observer.backendEnded(options.name, end, { isAtStart: false }),
      onUnsent: (message) => this.#lostCalls.unsent(message),
      onRestored: () => this.#restored(),
      onGivenUp: options.onOver,
      onFault: (cause) => this.#fail(cause),
    });
    if (isOneStream) this.#oneStream = new OneStream(this.outbound, limits);
    this.inbound = new Inbound({
      calls: this.calls,
      serverRequests: this.#serverRequests,
      upstream: this.upstream,
      outbound: this.outbound,
      reruns: this.#reruns,
      client,
      oneStream: this.#oneStream,
      ...{ limits, primes },
      watch: client.isGroup ? undefined : watcherFor(observer.calls, parts.principal, options.name),
      tellsRequests: () => this.#router.tellsRequests,
      onDropped: (what) => this.drop(what),
      onClientChanged,
    });
    this.#lostCalls = new LostCalls({
      calls: this.calls,
      reruns: this.#reruns,
      upstream: this.upstream,
      inbound: this.inbound,
      onUndeliverable: () => this.drop('undeliverable'),
    });
  }

  /**
   * Starts the server, passes `initialize` on, with the headers that came with it, and answers it.
   * @param headers of a successful answer
   */
  start(initialize: Message, reply: Reply, headers?: Headers): void {
    this.#opening = this.#oneStream?.opening(reply) ?? this.#answerTo(initialize, reply, headers);
    this.upstream.open();
    this.inbound.call([initialize], this.#opening, reply);
  }

  /** The server has answered `initialize`, and there is a log to append to. */
  open(handshake: Handshake): void {
    this.#handshake = handshake;
    this.#opening = undefined; // and with it the client's request
    this.outbound.open();
  }

  /**
   * Goes on where an earlier owner was lost: with its server's session where that outlives a connection. Else what it left
   * unanswered is answered, or run again by a new server.
   */
  adopt({ calls, questions, taken, forwarded }: Adoption, handshake: Handshake): void {
    const { client, parts, onOver } = this.#options;
    if (forwarded !== undefined) this.upstream.hear(forwarded);
    const place = client.backend;
    if (place !== undefined) {
      const adopted = this.inbound.adopt(calls);
      this.#adoptQuestions(questions, adopted, place.isFirst);
      this.open(handshake);
      this.upstream.attach({ state: place.state, pending: adopted.map(({ id }) => id), taken }, place.isFirst);
      return;
    }
    for (const { stream, id } of questions) this.outbound.add(stream, cancellationOf(id), false);
    for (const call of this.inbound.adopt(calls)) {
      if (!this.#reruns.allows(call, 'loss')) this.inbound.fail(call, 'outcome_unknown');
    }
    this.open(handshake);
    const { onBackendExit, hibernateAfterMs } = parts.server;
    const isWanted = this.calls.size > 0 || client.expectsServer;
    // What was in the process is gone; the client is to know (docs/design.md, D5). Not at once: who waits for what is in the log
    // now comes for it first.
    if (onBackendExit === 'end') this.#endTimer = setTimeout(() => onOver('server_exited'), collectMs).unref();
    // A lost instance may leave thousands of sessions whose clients do no more than listen.
    else if (hibernateAfterMs !== undefined && !isWanted) this.upstream.hibernate();
    else this.#restore(handshake, []);
  }

  /** The session ends: what waits for its turn has to go elsewhere. */
  close(): void {
    clearTimeout(this.#endTimer);
    this.inbound.close();
  }

  /** Ends the session for a fault of the gateway, and nothing else. */
  #fail(cause: unknown): void {
    tellFailure(this.#observer, this.#options.name, cause);
    this.#options.onOver('internal');
  }

  /** See `Session.strand`. */
  strand(openForMs: number): void {
    if (this.#oneStream === undefined) this.outbound.streams.strand(openForMs);
    else this.#oneStream.giveUp(openForMs);
  }

  drop(what: Dropped, text?: Buffer): void {
    this.dropped[what] = (this.dropped[what] ?? 0) + 1;
    this.#observer.dropped(this.#options.name, what, text, this.#handshake === undefined);
  }

  #answerTo(initialize: Message, reply: Reply, headers?: Headers): OpeningAnswer {
    return createOpeningAnswer(idOf(initialize), reply, headers, this.#options.parts.options, {
      onUndeliverable: () => this.drop('undeliverable'),
      onBlocked: (isBlocked) => this.outbound.hold(isBlocked),
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
    this.outbound.finish();
    this.calls.tasks.clear();
    this.#place.forget();
    const reason = reasonOfLoss(end);
    if (this.#handshake === undefined) this.#options.onOver(reasonOfFailedStart(end));
    else if (this.#options.parts.server.onBackendExit === 'end') this.#options.onOver(reason);
    else {
      // First, so that a cancellation still finds the stream where its request went.
      for (const { destination, text } of this.#serverRequests.cancelAll()) this.#router.send(destination, text);
      const untaken = readUntaken(end.untaken);
      this.#lostCalls.end(reason, untaken);
      this.outbound.flush();
      this.#restore(this.#handshake, untaken);
    }
  }

  /** Starts the server again; what it has to have again waits before what the client sends from now on. */
  #restore(handshake: Handshake, untaken: readonly Untaken[]): void {
    this.upstream.restore(this.#options.client, handshake);
    for (const { watch } of this.calls.all()) watch?.awaitsStart();
    this.#lostCalls.sendAgain(untaken);
  }

  /** The server still waits for answers to its questions, where those can be told apart from another backend's. */
  #adoptQuestions(questions: Adoption['questions'], calls: readonly Call[], isFirst: boolean): void {
    for (const { stream, id } of questions) {
      const call = calls.find(({ answer }) => answer.stream === stream);
      if (isFirst) this.#serverRequests.adopt(id, call ?? 'get');
      else this.outbound.add(stream, cancellationOf(id), false);
    }
  }

  /** A group has no GET stream: its clients listen to changes, each to those that it asks for, and to nothing else. */
  #tellGroup(text: Buffer | undefined): void {
    const { client, parts } = this.#options;
    if (text !== undefined && !isChange(readOwn(text))) this.drop('undeliverable', text);
    else if (client.topic !== undefined) parts.options.onGroupChange?.(client.topic, text);
  }

  /** The new backend is where the lost one was: the client looks anew. */
  #restored(): void {
    const { client } = this.#options;
    for (const { watch } of this.calls.all()) watch?.started();
    const declared = declaredListChanges(this.#handshake as Handshake);
    if (client.isGroup) this.#tellGroup(undefined);
    else for (const change of declared) this.outbound.add(getStream, change, false);
    this.outbound.flush();
    this.#observer.restored(this.#options.name, { pid: this.upstream.pid, ...this.upstream.restoration });
  }
}
