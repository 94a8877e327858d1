import type { RequestId } from '../faults.ts';
import type { Members } from '../json/object-members.ts';

/**
 * A JSON-RPC 2.0 message as routing sees it: its text, and the few fields that say where it belongs. The text is what
 * was received and what is sent on (P1).
 */
export interface Message {
  readonly kind: 'request' | 'notification' | 'response';
  readonly text: Buffer;
  /** The id of a request or response; null for a response whose sender could not read the id. */
  readonly id: RequestId | null | undefined;
  readonly method: string | undefined;
  /** Of a request, where its progress is to be reported; of `notifications/progress`, what it reports on. */
  readonly progressToken: RequestId | undefined;
  /** The request that `notifications/cancelled` cancels. */
  readonly cancels: RequestId | undefined;
  /** The task that it belongs to: `params.taskId`, or the related task in `params._meta` (2025-11-25, basic/utilities/tasks). */
  readonly taskId: string | undefined;
  /** True if `params.task` asks for a task (2025-11-25, basic/utilities/tasks, "Creating Tasks"). */
  readonly asksForTask: boolean;
  /** True if `params._meta` names a protocol version: a request of the modern era (2026-07-28, basic/versioning). */
  readonly isModern: boolean;
  /** True for a response that is an error. */
  readonly isError: boolean;
  /**
   * True for what stands in for a message of a server that breaks a bound: an error in place of a response, or a request
   * without its params, which is to be refused.
   */
  readonly isStandIn?: boolean;
  /** Where the members of the routing levels lie. */
  readonly memberRanges: MemberRanges;
}

/** A level of a message that is read on the way: its own members, those of its `params`, those of `params._meta`. */
export type MessageLevel = 'message' | 'params' | 'meta';

/** The members of each level; undefined where there is no object. */
export interface MemberRanges extends Readonly<Record<MessageLevel, Members | undefined>> {
  /** What has to be taken off their places to get places in the message's text. */
  readonly start: number;
}
