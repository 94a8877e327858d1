import type { BackendEnd, QueuedMessage, RequestIds } from '../../../core/backend/backend.ts';
import { isUnauthorized } from '../../../core/backend/connect-failure.ts';
import type { NoTokenReason } from '../../../core/backend/upstream-tokens.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { BackpressureGroup } from './backpressure-group.ts';
import type { Canceller } from './canceller.ts';
import type { HttpConnection, HttpResponse } from './http-connection.ts';

/** One server, as all exchanges with it have it in common. */
export interface ExchangeServer {
  /** Where messages are posted. */
  readonly url: URL;
  readonly connection: HttpConnection;
  readonly flow: BackpressureGroup;
  readonly maxLineBytes: number;
  /** The rules of a server that keeps a session. Absent if each exchange stands alone. */
  readonly session?: ExchangeSession | undefined;
  /** @param relatedRequests the requests of the message that was posted */
  onMessages(messages: readonly Message[], relatedRequests: RequestIds): void;
  onNoise(text: Buffer, more?: number): void;
}

/** What a transport adds to the exchange where the server keeps a session. */
export interface ExchangeSession {
  /** True while the server can forget the session: it has begun, and the server can tell it from others. */
  isKnown(): boolean;
  /** True if the server names the URL of POSTs itself. */
  readonly namesUrl: boolean;
  /** True for a status by which the specification of the transport says that the session is over. */
  endsBy(status: number): boolean;
  /** Asks a server that refused a message whether it has forgotten the session. Never rejects. */
  isForgotten(): Promise<boolean>;
  /** Headers that the message has beside those of the client. */
  headersOf?(message: Message): Readonly<Record<string, string>>;
  /** Reads the head of a 2xx response. Returns what is wrong with it, if anything. */
  readHead?(answer: HttpResponse, isInitialize: boolean): string | undefined;
  /**
   * The server has accepted a message by this response, which has no answer. Returns a promise that resolves when the
   * answer can no longer come elsewhere, or `open` if it can for as long as the backend lives; undefined if it cannot now.
   */
  elsewhere(answer: HttpResponse | undefined): Promise<unknown> | 'open' | undefined;
  /** Requests a stream after an event. Absent where the server resumes no stream. */
  resumeStream?(lastEventId: string | undefined, canceller: Canceller): Promise<HttpResponse>;
  /** A stream with unanswered requests has its first event id, or a further one. */
  onCursor?(isFirst: boolean): void;
}

/** One message that goes to the server. */
export interface OutgoingMessage extends QueuedMessage {
  /** The ids of its requests; none for a notification or response. */
  readonly ids: RequestIds;
  /** Headers that the message has in place of `headers`, which they contain. */
  readonly ownHeaders?: Readonly<Record<string, string>> | undefined;
  /** True for the `initialize` of a session. */
  readonly isInitialize?: boolean;
  /** True if the message waits for a server that is away. Otherwise it is sent once only. */
  readonly waitsForServer: boolean;
  /** How long the server may take for its whole response; no limit if undefined. */
  readonly limitMs?: number | undefined;
  /** The message is sent after this promise; never, if the promise resolves with an end. */
  readonly after?: Promise<ExchangeEnd | undefined> | undefined;
}

/** The answer to a message that an earlier backend posted: a stream, and its last event that was read. */
export interface ResumedAnswer {
  readonly ids: RequestIds;
  readonly cursor: string;
  /** Drops messages that the stream repeats. */
  dropRepeats(messages: readonly Message[]): readonly Message[];
}

/** How an exchange ended. */
export type ExchangeEnd =
  /** The message is accepted and its requests are answered, or nobody waits any more. */
  | { readonly outcome: 'done' }
  /** The server no longer knows the session; `isTaken` if it had accepted the message before. */
  | { readonly outcome: 'forgotten'; readonly isTaken: boolean }
  | ExchangeFailure;

/** The requests are not answered, and will not be. */
export interface ExchangeFailure {
  readonly outcome: 'failed';
  readonly reason: Reason;
  /** One sentence for the operator, without contents. */
  readonly detail: string;
  /** The status with which the server refused the message. */
  readonly status?: number;
  /** The server refused the message for now, and named this time. */
  readonly retryAfterS?: number | undefined;
  readonly cause?: unknown;
  /** No connection was established for as long as a message waits for its server. */
  readonly isUnreachable?: boolean;
  /** The server has answered like one of HTTP+SSE. */
  readonly isOtherTransport?: boolean;
  /** The server has answered, though not as it should. */
  readonly isOddAnswer?: boolean;
  /** The message was not sent, because the gateway has no token for it. */
  readonly noToken?: NoTokenReason | undefined;
}

/** Creates the end of an exchange that failed. */
export const failedExchange = (
  reason: Reason,
  detail: string,
  more?: Omit<ExchangeFailure, 'outcome' | 'reason' | 'detail'>,
): ExchangeFailure => ({ outcome: 'failed', reason, detail, ...more });

/** The end of a backend whose first message the server has refused, or could not be sent. */
export const failedStart = (
  { detail, cause, status, noToken, isOddAnswer }: ExchangeFailure,
  isOtherTransport: boolean,
): BackendEnd => ({
  reason: 'failed',
  detail,
  cause,
  isOtherTransport,
  isOddAnswer,
  isUnauthorized: isUnauthorized(status),
  noToken,
});
