import type { Reason, RequestId } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Era } from '../protocol/revisions.ts';
import type { Emit } from '../util/telemetry/emit.ts';

/**
 * The outcome of a call.
 *
 * - `ok`: the server answered with a result.
 * - `tool_error`: the server answered with a result that reports a failed tool.
 * - `error`: the server answered with an error.
 * - `fault`: the gateway answered with an error of its own.
 * - `left`: the client left before there was an answer, and nobody can come back for the answer.
 */
export type CallOutcome =
  | { readonly kind: 'ok' | 'tool_error' | 'left' }
  | { readonly kind: 'error'; readonly code: number | undefined }
  | { readonly kind: 'fault'; readonly reason: Reason };

/** The sender and the server of a call. */
export interface CallOrigin {
  readonly server: string;
  readonly era: Era;
  /** The sender; undefined if the request was refused before its sender was known. */
  readonly principal: Principal | undefined;
  /**
   * The short name of the call's session in logs; undefined if the call has no session or the session was not found.
   */
  readonly session?: string | undefined;
}

/** The arguments of a call of a tool. */
export interface CallArguments {
  readonly bytes: number;
  /** JSON; undefined if it is longer than `maxArgumentBytes`. */
  readonly text: Buffer | undefined;
}

/** Longer arguments are only counted (P8). */
export const maxArgumentBytes = 8 * 1024;

/** How much of the answer to a failed call is kept (P8). */
export const maxAnswerBytes = 8 * 1024;

/** A call has ended. The event has no content, but for arguments and failed answers that a sink wants. */
export interface EndedCall {
  readonly type: 'call-ended';
  readonly origin: CallOrigin;
  /** The called method; undefined if the request was refused unread. */
  readonly method: string | undefined;
  /**
   * The name of the tool or prompt, if a sink wants names. The URI of a resource does not count as a name, since
   * the expansion of its template may contain content.
   */
  readonly name: string | undefined;
  /** The name and version that the client of a modern call gives itself, if a sink wants names. */
  readonly client?: string | undefined;
  /** The arguments of a tool, if a sink wants those of this tool. */
  readonly args?: CallArguments | undefined;
  /** The start of the server's answer to a failed call, if a sink wants it. */
  readonly answer?: Buffer | undefined;
  readonly outcome: CallOutcome;
  /** The time since the request arrived at the gateway, or at the instance that took the session over. */
  readonly durationMs: number;
  /**
   * The part of `durationMs` from sending the request to the server until its response was read, without `waitedMs`.
   * Undefined if the server did not get the request.
   */
  readonly serverMs: number | undefined;
  /**
   * The part of `durationMs` in which the server could not work on the call. The server waited for an answer of the
   * client (usually of a person or a model), or was being started.
   */
  readonly waitedMs: number;
  /** True if the answer is a task that the gateway made of the call, which goes on. */
  readonly isTask?: boolean;
  /** The bytes of the request; 0 if the request is not kept. */
  readonly bytesIn: number;
  /** The bytes of the server's response; 0 for a fault. */
  readonly bytesOut: number;
  /** The id of the HTTP request that contained the call, if a sink wants names and the request has an id. */
  readonly requestId: string | undefined;
  /**
   * The id of a request that its session has failed, for a page that follows the session. It is unique only within the
   * session, and no log line has it.
   */
  readonly id?: RequestId | undefined;
}

/** An event of a client's call. Requests of the gateway itself to servers are not calls. */
export type CallEvent =
  /** The owner of the session reports the call, or the instance that refused it. Each call ends once. */
  | EndedCall
  /** Any HTTP request to a server's endpoint was answered with a fault. */
  | { readonly type: 'request-refused'; readonly server: string; readonly reason: Reason };

/** How calls are reported. */
export interface CallTelemetry {
  readonly emit: Emit<CallEvent>;
  /** True if a sink wants names of tools and prompts and request ids, which cost a search in each request. */
  readonly wantsNames: boolean;
  /** True if a sink wants the arguments of this tool; absent if none wants any. */
  readonly wantsArguments?: ((server: string, tool: string) => boolean) | undefined;
  /** True if a sink wants the answers to failed calls. */
  readonly wantsFailedAnswers?: boolean;
}
