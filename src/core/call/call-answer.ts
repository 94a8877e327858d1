import type { Reason, RequestId } from '../protocol/faults.ts';
import type { Message } from '../protocol/message/message.ts';
import type { RenumberedIds } from '../protocol/modern/renumber.ts';
import type { CallReport } from './call-report.ts';

/** Further members of an error's `data`; see `faultMessage`. */
export type FaultData = Readonly<Record<string, unknown>>;

/** The destination of the messages and the response of a call, in both eras. */
export interface CallAnswer {
  /** Sends a message that belongs to the call. Returns false if no stream can carry the message. */
  message(message: Message): boolean;
  /**
   * Takes the response to the request, or to one of several requests. The last response completes the answer.
   * @param status the HTTP status if the answer has not begun; 200 by default
   */
  response(response: Message, status?: number): void;
  /**
   * Sends an error of the catalogue in place of the response.
   * @param id the request; only needed if there are several
   */
  fault(reason: Reason, data?: FaultData, id?: RequestId): void;
  /** The report of the call, unless it is reported elsewhere, or nobody wants reports. */
  readonly report?: CallReport | undefined;
}

/** The answer to requests of a session, whose streams clients can resume. */
export interface SessionAnswer extends CallAnswer {
  /** The number of the session's stream that carries the answer; undefined if there is none or the answer is lost. */
  readonly stream: number | undefined;
  /** True if messages that belong to the call can be sent with its answer. */
  readonly hasStream: boolean;
  /** The client's ids of a request that was renumbered, by the server's id. */
  renumberedIds?(id: RequestId): RenumberedIds | undefined;
}

/** The answer to `initialize`. */
export interface OpeningAnswer extends SessionAnswer {
  /** Passes an error, or an invalid answer of the server, on to the client. No session is opened. */
  refused(response: Message): void;
}
