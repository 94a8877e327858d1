import type { Backend, BackendEvents, OpenOptions, Sent } from '../../../core/backend/backend.ts';
import { HeldBytes } from '../../../core/backend/held-bytes.ts';
import type { CallAnswer } from '../../../core/call/call-answer.ts';
import { entryOf, type Reason, type RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { findRange, scalarAt, valueAt } from '../../../core/protocol/json.ts';
import { withId } from '../../../core/protocol/message/changed-message.ts';
import { withoutMember } from '../../../core/protocol/message/edit-members.ts';
import {
  createMessage,
  emptyResult,
  type Message,
  memberValue,
  readGatewayMessage,
  requestId,
} from '../../../core/protocol/message/message.ts';
import { isDroppedForModern, isUnknownToModern, methodOf } from '../../../core/protocol/methods/methods.ts';
import { revisionToRetry } from '../../../core/protocol/modern/discovery.ts';
import { type LogLevel, readLogLevel } from '../../../core/protocol/modern/log-levels.ts';
import { listChanges, type SubscriptionFilter } from '../../../core/protocol/modern/subscription-filter.ts';
import { ChangeFeed, type SubscribeOutcome } from '../modern/changes/change-feed.ts';
import type { ModernServerAccess } from '../modern/session-access.ts';
import { type LegacyClient, readLegacyClient, withEnvelope } from '../translate/legacy-on-modern/legacy-client.ts';
import { asLegacyResponse } from '../translate/legacy-on-modern/legacy-response.ts';
import { toInitializeResult } from '../translate/legacy-on-modern/opening.ts';
import { HeldOutput } from './held-output.ts';
import { SessionTasks } from './session-tasks.ts';
import { TranslatedCall, type TranslatedCallHost } from './translated-call.ts';

export interface TranslatorOptions {
  readonly server: ModernServerAccess;
  /** True if each request has a connection of its own. */
  readonly isOverHttp: boolean;
  /** The most bytes of requests that may be sent again, and of answers to questions (P8). */
  readonly maxQueuedBytes: number;
}

/** The declared capabilities of a server that matter here. */
interface Capabilities {
  readonly logs: boolean;
  readonly announcesResources: boolean;
  /** True if the client may ask for tasks. */
  readonly tasks: boolean;
  /** The lists whose changes the server announces. */
  readonly changes: SubscriptionFilter;
}

const noCapabilities: Capabilities = { logs: false, announcesResources: false, tasks: false, changes: {} };

function capabilitiesIn(opening: Message): Capabilities {
  const text = valueAt(opening.text, ['result', 'capabilities']) ?? Buffer.from('{}');
  const changes = listChanges.filter(([, list]) => scalarAt(text, [list, 'listChanged']) === true);
  return {
    logs: typeof findRange(text, ['logging']) === 'object',
    announcesResources: scalarAt(text, ['resources', 'subscribe']) === true,
    tasks: typeof findRange(text, ['tasks']) === 'object',
    changes: Object.fromEntries(changes.map(([flag]) => [flag, true as const])),
  };
}

/**
 * A modern server as the backend of one legacy session (docs/design.md, D8, docs/decisions/0025).
 *
 * Each request gets the envelope that the modern era wants. Requests that the modern era does not have are answered
 * here, or replaced by those that it has instead. The translator keeps only state that a session's record restores for
 * any backend: `initialize`, the log level, the subscriptions.
 */
export class Translator implements Backend, TranslatedCallHost {
  readonly pid = undefined;
  readonly server: ModernServerAccess;
  readonly #options: TranslatorOptions;
  readonly #events: BackendEvents;
  readonly #newestHeaders: NonNullable<OpenOptions['headers']>;
  readonly output: HeldOutput;
  readonly #feed: ChangeFeed;
  /** A placeholder until `initialize`. */
  #client: LegacyClient = { revision: '', infoText: undefined, capabilitiesText: '{}' };
  #capabilities = noCapabilities;
  #logLevel: LogLevel | undefined;
  readonly #calls = new Map<RequestId, TranslatedCall>();
  /** The calls that wait for the client's answers, by the questions' ids. */
  readonly #questions = new Map<RequestId, TranslatedCall>();
  #lastQuestion = 0;
  readonly #held = new HeldBytes();
  readonly #tasks: SessionTasks;
  #isEnded = false;

  constructor(options: TranslatorOptions, events: BackendEvents, { headers }: OpenOptions = {}) {
    this.server = options.server;
    this.#options = options;
    this.#events = events;
    this.#newestHeaders = headers ?? (() => ({}));
    this.output = new HeldOutput(events);
    this.#tasks = new SessionTasks(this);
    this.#feed = new ChangeFeed({
      listen: (filter, answer) => this.#listen(filter, answer),
      onChange: (notification) => this.output.notify(notification),
      isUnordered: options.isOverHttp,
    });
  }

  send(message: Message, headers?: ForwardedHeaders): Sent {
    if (this.#isEnded) return 'ended';
    if (message.kind === 'request') return this.#handleRequest(message, headers);
    if (message.kind === 'notification') return this.#notify(message, headers);
    const { id } = message;
    if (id == null) return 'sent';
    this.#tasks.answered(id);
    this.#questions.get(id)?.settle(id, message);
    return 'sent';
  }

  pause(): void {
    this.output.pause();
  }

  resume(): void {
    this.output.resume();
  }

  async close(): Promise<void> {
    this.#end('closed', 'The session has ended.');
  }

  #handleRequest(request: Message, headers: ForwardedHeaders | undefined): 'sent' | 'full' {
    const { method } = request;
    const { logs, announcesResources, tasks } = this.#capabilities;
    if (method === 'initialize') this.#initialize(request, headers);
    else if (method === 'ping') this.#respondEmpty(request);
    else if (method === 'logging/setLevel' && logs) this.#setLevel(request);
    else if (method === 'resources/subscribe' && announcesResources) this.#subscribe(request);
    else if (method === 'resources/unsubscribe' && announcesResources) this.#unsubscribe(request);
    else if (tasks && methodOf(method).taskNews !== undefined) this.#tasks.serve(request);
    else if (isUnknownToModern(method)) this.output.abandon(requestId(request), 'method_of_other_era');
    else return this.#forward(request, headers);
    return 'sent';
  }

  #forward(request: Message, headers: ForwardedHeaders | undefined): 'sent' | 'full' {
    const logLevel = this.#logLevel;
    const asksForTask = this.#capabilities.tasks && request.asksForTask && request.method === 'tools/call';
    const plain = asksForTask ? readGatewayMessage(withoutMember(request.text, ['params', 'task'])) : request;
    const enveloped = this.#enveloped(plain, logLevel);
    if (!this.reserveBytes(enveloped.text.length)) return 'full';
    const task = asksForTask ? this.#tasks.begin(request) : undefined;
    if (asksForTask && task === undefined) {
      this.#held.bytes -= enveloped.text.length;
      return 'sent';
    }
    const id = task?.callId ?? requestId(request);
    const output = task ?? this.output;
    const call = new TranslatedCall(this, { id, output, request: enveloped, logLevel, headers });
    this.#calls.set(id, call);
    if (task !== undefined) task.onCancelled = () => call.cancel();
    this.#feed.flush(); // earlier subscriptions must get the changes that this call makes
    call.start();
    return 'sent';
  }

  openQuestion(call: TranslatedCall): RequestId {
    this.#lastQuestion += 1;
    this.#questions.set(this.#lastQuestion, call);
    return this.#lastQuestion;
  }

  closeQuestion(id: RequestId): void {
    this.#questions.delete(id);
  }

  asAnswer(response: Message, method: string): Message {
    return asLegacyResponse(response, method, this.#capabilities.tasks);
  }

  onOver(call: TranslatedCall, reason?: Reason): void {
    this.#calls.delete(call.id);
    this.#held.bytes -= call.heldBytes;
    // The backend that restores the session finds out the era again.
    if (reason === 'server_not_modern') this.#endSoon('The server no longer supports the modern era.');
  }

  #notify(notification: Message, headers: ForwardedHeaders | undefined): 'sent' | 'full' {
    const { method, cancels } = notification;
    if (cancels !== undefined) this.#cancel(cancels, memberValue(notification, 'params', 'reason'));
    else if (method === 'notifications/initialized') this.#feed.openLists(this.#capabilities.changes);
    else if (method !== 'notifications/cancelled' && !isDroppedForModern(method)) {
      // A modern server may drop a notification without an envelope.
      const enveloped = this.#enveloped(notification, undefined);
      return this.server.notify(enveloped, headers) === undefined ? 'sent' : 'full';
    }
    return 'sent';
  }

  #cancel(id: RequestId, reason: unknown): void {
    this.#tasks.stopWaiting(id);
    this.#calls.get(id)?.cancel(typeof reason === 'string' ? reason : undefined);
  }

  /** Opens the session. `server/discover` is sent each time, since the server may have been restarted. */
  #initialize(request: Message, headers: ForwardedHeaders | undefined): void {
    this.#client = readLegacyClient(request);
    this.#discover(requestId(request), headers, false);
  }

  /** Answers `initialize`, whose id this is. The server's revision is known once it has started for the first request. */
  #discover(id: RequestId, headers: ForwardedHeaders | undefined, isRepeat: boolean): void {
    const discover = this.#ownRequest('server/discover', {});
    const answer: CallAnswer = {
      message: () => false,
      response: (response) => {
        if (!isRepeat && revisionToRetry(response) !== undefined) return this.#discover(id, headers, true);
        const { revision } = this.#client;
        const opening = toInitializeResult(response, id, revision, this.server.name);
        this.#capabilities = capabilitiesIn(opening);
        this.output.respond(id, opening);
      },
      fault: (reason) => {
        this.output.abandon(id, reason);
        this.#endSoon(entryOf(reason).message);
      },
    };
    this.server.request(discover, undefined, answer, headers);
  }

  #setLevel(request: Message): void {
    const level = readLogLevel(memberValue(request, 'params', 'level'));
    if (level === undefined) return this.output.abandon(requestId(request), 'bad_log_level');
    this.#logLevel = level;
    this.#respondEmpty(request);
  }

  #subscribe(request: Message): void {
    const uri = memberValue(request, 'params', 'uri');
    if (typeof uri !== 'string') return this.output.abandon(requestId(request), 'bad_uri');
    this.#feed.subscribe(uri, (outcome) => this.#answerSubscriber(request, outcome));
  }

  #answerSubscriber(request: Message, outcome: SubscribeOutcome): void {
    const id = requestId(request);
    if (outcome === 'subscribed') this.#respondEmpty(request);
    else if ('reason' in outcome) this.output.abandon(id, outcome.reason);
    else this.output.respond(id, withId(asLegacyResponse(outcome.error, request.method as string), id));
  }

  #unsubscribe(request: Message): void {
    const uri = memberValue(request, 'params', 'uri');
    if (typeof uri !== 'string') return this.output.abandon(requestId(request), 'bad_uri');
    this.#feed.unsubscribe(uri);
    this.#respondEmpty(request);
  }

  /** Answers with an empty result. Official clients accept no other result where the legacy era has an empty one. */
  #respondEmpty(request: Message): void {
    const id = requestId(request);
    this.output.respond(id, emptyResult({ id }));
  }

  #listen(filter: SubscriptionFilter, answer: CallAnswer): () => void {
    const request = this.#ownRequest('subscriptions/listen', { notifications: filter });
    return this.server.request(request, undefined, answer, this.#newestHeaders());
  }

  /** Returns a request of the translator's own, with the client's envelope. */
  #ownRequest(method: string, params: object): Message {
    return this.#enveloped(createMessage({ id: 0, method, params }), undefined);
  }

  #enveloped(request: Message, logLevel: LogLevel | undefined): Message {
    return withEnvelope(request, this.#client, this.server.revision, logLevel);
  }

  reserveBytes(bytes: number): boolean {
    const isFull = this.#held.bytes + bytes > this.#options.maxQueuedBytes;
    if (!isFull) this.#held.bytes += bytes;
    return !isFull;
  }

  /** Ends the backend after the queued output was reported. */
  #endSoon(detail: string): void {
    queueMicrotask(() => this.#end('failed', detail));
  }

  #end(reason: 'closed' | 'failed', detail: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.output.close();
    this.#feed.close();
    this.#tasks.close();
    for (const call of this.#calls.values()) call.cancel();
    this.server.release();
    queueMicrotask(() => this.#events.onEnd({ reason, detail })); // never inside a call into the backend
  }
}
