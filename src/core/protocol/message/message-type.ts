import type { RequestId } from '../faults.ts';
import type { Members } from '../json.ts';

/**
 * A JSON-RPC 2.0 message as routing sees it: its text, and the few fields that decide where it goes. The text is sent
 * on as it was received (P1).
 */
export interface Message {
  readonly kind: 'request' | 'notification' | 'response';
  readonly text: Buffer;
  /** The id of a request or response; null for a response whose sender could not read the id. */
  readonly id: RequestId | null | undefined;
  readonly method: string | undefined;
  /**
   * In a request, the token for its progress; in `notifications/progress`, the token of the request that it reports on.
   */
  readonly progressToken: RequestId | undefined;
  /** The request that `notifications/cancelled` cancels. */
  readonly cancels: RequestId | undefined;
  /**
   * The task of the message: `params.taskId`, or the related task in `params._meta` (2025-11-25,
   * basic/utilities/tasks).
   */
  readonly taskId: string | undefined;
  /** True if `params.task` asks for a task (2025-11-25, basic/utilities/tasks, "Creating Tasks"). */
  readonly asksForTask: boolean;
  /** True if `params._meta` names a protocol version: a request of the modern era (2026-07-28, basic/versioning). */
  readonly isModern: boolean;
  /** True for a response that is an error. */
  readonly isError: boolean;
  /**
   * True for a result with the member `isError: true`: even a failed tool gives a result (2025-11-25, server/tools,
   * "Error Handling").
   */
  readonly reportsToolError: boolean;
  /** Set if the gateway made the message in place of one of a server that cannot be passed on. */
  readonly standIn?: StandIn | undefined;
  /** The ranges of the members of the routing levels. */
  readonly memberRanges: MemberRanges;
}

/**
 * Why a message stands in for one of a server.
 * `response_too_complex`: the server's message breaks a limit. An error stands in for a response. A request without its
 *   params stands in for a request, and is then refused.
 * `bad_response`: the server's answer is no valid message. An error stands in for it.
 * `not_json_rpc`: the server's request is no valid message. `refusal` is the error for the server.
 * `server_overloaded`: the server refused a request for now. An error stands in for the answer that it did not give.
 */
export type StandIn =
  | { readonly reason: 'response_too_complex' }
  | {
      readonly reason: 'bad_response';
      readonly problem: string;
      /** The beginning of what the server wrote. */
      readonly written: Buffer;
    }
  | { readonly reason: 'not_json_rpc'; readonly written: Buffer; readonly refusal: Buffer }
  | {
      readonly reason: 'server_overloaded';
      /** The time of `Retry-After`. */
      readonly retryAfterS: number;
    };

/** An answer that was no valid message, as logs describe it. */
export interface BadAnswer {
  /** The method of the request that it answers. */
  readonly method: string;
  readonly problem: string;
}

/** A level of a message that routing reads: its own members, those of its `params`, or those of `params._meta`. */
export type MessageLevel = 'message' | 'params' | 'meta';

/** The members of each level; undefined where there is no object. */
export interface MemberRanges extends Readonly<Record<MessageLevel, Members | undefined>> {
  /** The number to subtract from their ranges to get ranges in the message's text. */
  readonly start: number;
}
