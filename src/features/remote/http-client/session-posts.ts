import { reportRefused } from '../../../core/backend/answers/refused-requests.ts';
import type { BackendEvents, QueuedMessage } from '../../../core/backend/backend.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { answeredIn, requestIdsOf } from '../../../core/protocol/ids/answer-ids.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { detach } from '../../../core/util/boundary.ts';
import { TimeLimit } from '../../../core/util/timing/time-limit.ts';
import { settlesWithin } from '../../../core/util/timing/within.ts';
import { Exchange } from './exchange.ts';
import type { ExchangeEnd, ExchangeServer, OutgoingMessage, ResumedAnswer } from './exchange-rules.ts';
import { createOrderedSender, type OrderedSender, type PostProgress } from './ordered-sender.ts';
import { abandonAfterMs, blocksNextForMs, maxOvertakeMs, noRoom, OpenRequests } from './post-order.ts';
import { forgottenGraceMs, mayBeRepeated } from './session-probe.ts';

/** What a transport decides about the messages of its session. */
export interface SessionPostRules {
  readonly maxQueuedBytes: number;
  /** True if the server can tell which request a cancellation is for. Otherwise the request is cut. */
  tellsRequests(): boolean;
  /** How a message goes out. */
  prepare(message: Message): Pick<OutgoingMessage, 'isInitialize' | 'waitsForServer' | 'limitMs'>;
  /** Returns what the next message waits for; undefined for the usual (post-order.ts). */
  passesWhen(exchange: Exchange): Promise<unknown> | undefined;
  /** An exchange has ended. Returns true if nothing else is to be done about it. */
  handleEnd(exchange: Exchange, end: ExchangeEnd): boolean;
  /** The server no longer knows the session. */
  onForgotten(): void;
  onFault(cause: unknown): void;
  /** A message was not accepted: one sentence without contents, and the total of dropped notifications and responses. */
  onPostFailed?: ((detail: string, dropped: number) => void) | undefined;
}

/** An exchange, and its place among all messages. */
interface Post {
  readonly exchange: Exchange;
  readonly sequence: number;
}

/**
 * The messages of one session on their way to its server, in order (post-order.ts):
 * - A cancellation is posted when the server has begun to answer the request, or after `maxOvertakeMs`.
 * - A request that stays without an answer is reported as unanswered. Other messages are dropped and counted.
 * - When the server has forgotten the session, the messages that it never accepted can be sent to another one.
 */
export class SessionPosts {
  readonly #rules: SessionPostRules;
  readonly #events: BackendEvents;
  readonly #sender: OrderedSender;
  readonly #slots = new OpenRequests();
  readonly #open = new Set<Post>();
  readonly #byId = new Map<RequestId, Exchange>();
  /** The messages that the server refused because it has forgotten the session. */
  readonly #refused: Post[] = [];
  #server: ExchangeServer | undefined;
  #postedCount = 0;
  #dropped = 0;
  #isForgotten = false;
  #isOver = false;

  constructor(rules: SessionPostRules, events: BackendEvents) {
    this.#rules = rules;
    this.#events = events;
    this.#sender = createOrderedSender(rules.maxQueuedBytes, (cause) => rules.onFault(cause));
  }

  /** Like `Backend.send`, while the backend lives. */
  send(message: Message, headers: ForwardedHeaders): 'sent' | 'full' {
    return this.#sender.send(message, headers);
  }

  /** The server is known: the queued messages go out. */
  start(server: ExchangeServer): void {
    this.#server = server;
    this.#sender.start((sending) => this.#post(sending, server));
  }

  /** Reads on the answer to a message of an earlier backend. */
  resume(answer: ResumedAnswer, server: ExchangeServer): void {
    this.#slots.add();
    this.#track(new Exchange(answer, server), () => true);
  }

  /** Nothing more is sent: queued and later messages wait. */
  hold(): void {
    this.#sender.hold();
  }

  /** Ends all exchanges. Returns the messages that the server has certainly not accepted, in order. */
  end(): readonly QueuedMessage[] {
    this.#isOver = true;
    this.hold();
    const unsent = [...this.#open].filter(({ exchange }) => exchange.isUnsent && !exchange.isAbandoned);
    const posts = [...this.#refused, ...unsent].sort((a, b) => a.sequence - b.sequence);
    for (const { exchange } of this.#open) exchange.abandon();
    return [...posts.flatMap(({ exchange: { outgoing } }) => outgoing ?? []).map(asQueued), ...this.#sender.takeAll()];
  }

  /** Resolves when the server has responded to all messages on their way, or after `forgottenGraceMs`. */
  responded(): Promise<unknown> {
    return settlesWithin(Promise.all([...this.#open].map(({ exchange }) => exchange.responded)), forgottenGraceMs);
  }

  get exchanges(): readonly Exchange[] {
    return [...this.#open].map(({ exchange }) => exchange);
  }

  /** Notes answers, wherever they came. */
  noteAnswers(messages: readonly Message[]): void {
    if (this.#byId.size === 0) return;
    for (const id of answeredIn(messages, this.#byId)) this.#byId.get(id)?.noteAnswers(messages);
  }

  #post(sending: QueuedMessage, server: ExchangeServer): PostProgress {
    const { message, headers } = sending;
    const ids = requestIdsOf(message);
    const slot = ids.length === 0 || this.#slots.acquire();
    let hasSlot = ids.length > 0 && slot === true;
    const cancelled = this.#findOpen(message.cancels);
    const waitForTurn = async (): Promise<ExchangeEnd | undefined> => {
      const isAdmitted = await slot;
      hasSlot = ids.length > 0 && isAdmitted;
      if (slot !== true && this.#isForgotten) return { outcome: 'forgotten', isTaken: false };
      if (!isAdmitted) return { outcome: 'failed', ...noRoom };
      if (cancelled !== undefined) await settlesWithin(cancelled.accepted, maxOvertakeMs);
      return undefined;
    };
    const after = slot !== true || cancelled !== undefined ? waitForTurn() : undefined;
    const exchange = new Exchange({ message, headers, ids, after, ...this.#rules.prepare(message) }, server);
    if (cancelled !== undefined) this.#cutCancelled(cancelled);
    this.#track(exchange, () => hasSlot);
    const blockingMs = blocksNextForMs(message);
    const isBlocking = blockingMs > 0 && slot === true; // no message waits for one that waits for a slot
    const usual = isBlocking ? settlesWithin(exchange.accepted, blockingMs) : Promise.resolve();
    return { passed: this.#rules.passesWhen(exchange) ?? usual, settled: exchange.accepted };
  }

  #findOpen(id: RequestId | undefined): Exchange | undefined {
    const exchange = id === undefined ? undefined : this.#byId.get(id);
    return exchange?.unanswered.has(id as RequestId) ? exchange : undefined;
  }

  #cutCancelled(exchange: Exchange): void {
    if (exchange.isUnsent || !this.#rules.tellsRequests()) exchange.abandon();
    else new TimeLimit(() => exchange.abandon(), abandonAfterMs).unref();
  }

  #track(exchange: Exchange, hasSlot: () => boolean): void {
    const post = { exchange, sequence: this.#postedCount++ };
    this.#open.add(post);
    for (const id of exchange.ids) this.#byId.set(id, exchange);
    exchange.onClosed = () => {
      if (hasSlot()) this.#slots.release();
    };
    const ended = exchange.ended.then((end) => {
      this.#open.delete(post);
      for (const id of exchange.ids) if (this.#byId.get(id) === exchange) this.#byId.delete(id);
      if (!this.#isOver) this.#settle(post, end);
    });
    detach('backend', ended, (cause) => this.#rules.onFault(cause));
  }

  #settle(post: Post, end: ExchangeEnd): void {
    const { exchange } = post;
    const { outgoing } = exchange;
    if (this.#rules.handleEnd(exchange, end) || end.outcome === 'done') return;
    if (end.outcome === 'forgotten') {
      if (end.isTaken || outgoing === undefined) return this.forget();
      if (mayBeRepeated(outgoing.message)) {
        this.#refused.push(post);
        return this.forget();
      }
    }
    const { reason, detail } = end.outcome === 'failed' ? end : refusedInEachSession(this.#server?.url.origin ?? '');
    const { isUnreachable, retryAfterS } = end.outcome === 'failed' ? end : {};
    const unanswered = [...exchange.unanswered];
    if (unanswered.length === 0) this.#dropped += 1;
    this.#rules.onPostFailed?.(detail, this.#dropped);
    if (unanswered.length > 0)
      reportRefused(this.#events, unanswered, { reason, isFinal: isUnreachable === true, retryAfterS });
  }

  /** The server no longer knows the session: the other messages on their way get the same answer. */
  forget(): void {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    this.hold();
    detach(
      'backend',
      this.responded().then(() => this.#rules.onForgotten()),
      (cause) => this.#rules.onFault(cause),
    );
  }
}

const asQueued = ({ message, headers }: QueuedMessage): QueuedMessage => ({ message, headers });

const refusedInEachSession = (where: string) =>
  ({
    reason: 'server_refused',
    detail: `${where} refused a message as one of an unknown session, also in new sessions.`,
  }) as const;
