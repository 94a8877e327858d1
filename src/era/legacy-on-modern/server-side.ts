import type { ModernCallAnswer } from '../../call/modern-answer.ts';
import type { EraEvidence } from '../../modern/era-finder.ts';
import type { CancelRequest } from '../../modern/process/shared-calls.ts';
import type { Reason } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../protocol/message/message.ts';
import type { LogLevel } from '../../protocol/modern/log-levels.ts';
import type { Era } from '../../protocol/revisions.ts';

/** A server of the modern era as a translator uses it, whatever its transport. */
export interface ModernServerAccess {
  readonly name: string;
  /** The newest revision of the modern era that it serves. */
  readonly revision: string;
  /**
   * Hands it a request that has its envelope. Everything that comes of it goes to `answer`, perhaps before this returns.
   * @param headers of the client's request that brought it; see `Backend.send`
   * @returns what to call when its client does not wait any more
   */
  request(
    request: Message,
    logLevel: LogLevel | undefined,
    answer: ModernCallAnswer,
    headers: ForwardedHeaders | undefined,
  ): CancelRequest;
  /** Passes a notification of a client on. Returns why it was not taken. */
  notify(notification: Message, headers: ForwardedHeaders | undefined): Reason | undefined;
  /** The session is over, or lets go of its server: it asks for nothing more. */
  release(): void;
}

/** A server whose era can be found out. */
export interface EraLookup {
  /**
   * Resolves with the reason if it cannot be found out.
   * @param headers of the client's request that makes it necessary
   * @param seen what a session has just seen of the server
   */
  findEra(headers: ForwardedHeaders | undefined, seen?: EraEvidence): Promise<Era | Reason>;
}
