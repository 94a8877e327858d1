import type { LoginOffer } from '../../../core/backend/connect-failure.ts';
import type { RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { openRequest } from '../../../core/protocol/ids/answer-ids.ts';
import { withId } from '../../../core/protocol/message/changed-message.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import { detach } from '../../../core/util/boundary.ts';
import type { Canceller } from '../http-client/canceller.ts';
import { Exchange } from '../http-client/exchange.ts';
import type { ExchangeEnd, ExchangeFailure, ExchangeServer } from '../http-client/exchange-rules.ts';

/** The server of all exchanges. Each exchange has receivers of its own. */
export type StatelessServer = Omit<ExchangeServer, 'session' | 'onMessages' | 'onNoise'>;

/** A request that is posted. */
export interface ModernRequestPost {
  readonly message: Message;
  /** Headers besides those that every POST has. */
  readonly headers: Readonly<Record<string, string>>;
  /** The headers of the client's request, which are among these. */
  readonly forwarded: ForwardedHeaders;
  /** Aborts the POST when nobody waits any more. */
  readonly canceller: Canceller;
  /** True if the POST is retried until a connection to the server is established; false if it is sent once only. */
  readonly waitsForServer: boolean;
  /** The head of a response came: the server has the request. */
  onAccepted(): void;
  /** Notifications that come before the response, in order. */
  onNotifications(messages: readonly Message[]): void;
  onNoise(text: Buffer, more?: number): void;
}

/** How a request ended. */
export type ModernPostOutcome =
  | { readonly ok: true; readonly response: Message; readonly status: number; readonly offer: LoginOffer }
  | (Partial<ExchangeFailure> & Pick<ExchangeFailure, 'reason' | 'detail'> & { readonly ok: false });

/**
 * Posts one request (2026-07-28, basic/transports/streamable-http). Resolves with the response as soon as it comes; what
 * the server sends after it is read and ignored. Never rejects.
 */
export function postModernRequest(post: ModernRequestPost, server: StatelessServer): Promise<ModernPostOutcome> {
  const { message, headers, forwarded, canceller, waitsForServer, onNoise } = post;
  const id = message.id as RequestId;
  return new Promise((resolve) => {
    let isAnswered = false;
    const handleMessages = (messages: readonly Message[]): void => {
      if (isAnswered) return;
      const index = messages.findIndex((found) => isResponseTo(found, id));
      const before = index < 0 ? messages : messages.slice(0, index);
      // A response to another request is for nobody: the requests of several users go to the server.
      const notifications = before.filter(({ kind }) => kind !== 'response');
      if (notifications.length > 0) post.onNotifications(notifications);
      const response = messages[index];
      if (response === undefined) return;
      isAnswered = true;
      const own = response.id === id || (response.id == null && !response.isError) ? response : withId(response, id);
      resolve({ ok: true, response: own, status: exchange.status, offer: exchange.offer });
    };
    const exchange = new Exchange(
      { message, headers: forwarded, ownHeaders: headers, ids: [id], waitsForServer },
      { ...server, onMessages: handleMessages, onNoise: (text, more) => isAnswered || onNoise(text, more) },
      canceller,
    );
    exchange.onAccepted = post.onAccepted;
    const settle = (end: ExchangeEnd): void => {
      // Without an answer and without a failure, the request was cancelled: nobody reads the reason.
      const failure = end.outcome === 'failed' ? end : { reason: 'server_unreachable' as const, detail: 'Cancelled.' };
      resolve({ ...failure, ok: false });
    };
    detach('backend', exchange.ended.then(settle));
  });
}

const isResponseTo = ({ kind, id }: Message, request: RequestId): boolean =>
  kind === 'response' && (id == null || openRequest(id, { has: (open) => open === request }) !== undefined);
