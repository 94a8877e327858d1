import type { CallAnswer } from '../../../core/call/call-answer.ts';
import type { Reason } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { LogLevel } from '../../../core/protocol/modern/log-levels.ts';
import type { CancelRequest } from '../modern/process/shared-calls.ts';

/** A modern server as a translator uses it, whatever its transport. */
export interface ModernServerAccess {
  readonly name: string;
  /** The newest revision of the modern era that the server serves. */
  readonly revision: string;
  /**
   * Sends a request that has its envelope. Its messages and its outcome go to `answer`, perhaps before this returns.
   * @param headers the headers of the client's request; see `Backend.send`
   * @returns the function that cancels the request
   */
  request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: CallAnswer,
    headers: ForwardedHeaders | undefined,
  ): CancelRequest;
  /** Passes on a client's notification. Returns the reason if it was not taken. */
  notify(notification: Message, headers: ForwardedHeaders | undefined): Reason | undefined;
  /** The session has ended or hibernates: it sends nothing more. */
  release(): void;
}
