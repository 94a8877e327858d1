import type { BackendEnd } from '../../backend/backend.ts';
import { helpIfEnded, helpIfSilent, withCheck } from './start-help.ts';

/** Why a server did not do what it should, as one of few words: for metrics and programs. */
export type FailureReason =
  | 'not_found'
  | 'not_started'
  | 'unreachable'
  | 'exited'
  | 'disconnected'
  | 'no_answer'
  | 'crash_loop'
  | 'line_too_long'
  | 'memory_limit';

/** Why a server failed. */
export interface Failure {
  readonly reason: FailureReason;
  /** The same as a sentence of the gateway's own: without paths, addresses and what the server wrote (P12). */
  readonly why: string;
  /** What to do about it, where that is known. */
  readonly help?: string | undefined;
}

const sentences: Readonly<Record<FailureReason, string>> = {
  not_found: 'Its command is not found.',
  not_started: 'It could not be started.',
  unreachable: 'It could not be reached, or did not let the gateway in.',
  exited: 'It ended by itself',
  disconnected: 'It closed the connection.',
  no_answer: 'It did not answer in time as an MCP server does.',
  crash_loop: 'It ended again and again, and is left alone for a while.',
  line_too_long: 'It wrote a line longer than --max-line-bytes, and was ended.',
  memory_limit: 'It used more memory than --max-memory-bytes, and was ended.',
};

const helps: Readonly<Partial<Record<FailureReason, string>>> = {
  not_found: 'Install it or correct the configuration; mcp-gangway check says where it was looked for.',
  not_started: 'mcp-gangway check says why.',
  unreachable: 'mcp-gangway check says why.',
  crash_loop: 'Its stderr says why it ends: see its card on the status page, or the log with --log-level stderr=debug.',
  no_answer: withCheck(helpIfSilent),
};

/** A failure with its sentence. */
export const failureOf = (reason: FailureReason): Failure => ({ reason, why: sentences[reason], help: helps[reason] });

/**
 * Why a backend ended; undefined if the gateway itself closed it.
 * @param isRemote the server runs by itself: what ended is a connection
 * @param isAtStart it ended before it had answered anything
 */
export function failureOfEnd(end: BackendEnd, isRemote: boolean, isAtStart: boolean): Failure | undefined {
  const { reason, exitCode, signal, isNotFound = false } = end;
  switch (reason) {
    case 'closed':
      return undefined;
    case 'failed':
      return failureOf(isRemote ? 'unreachable' : isNotFound ? 'not_found' : 'not_started');
    case 'exited':
      if (isRemote) return failureOf('disconnected');
      return {
        reason,
        why: `${sentences.exited}${byWhat(exitCode, signal)}.`,
        help: isAtStart ? withCheck(helpIfEnded) : undefined,
      };
    default:
      return failureOf(reason);
  }
}

function byWhat(exitCode: BackendEnd['exitCode'], signal: BackendEnd['signal']): string {
  if (typeof exitCode === 'number') return `, with code ${exitCode}`;
  return typeof signal === 'string' ? `, by ${signal}` : '';
}
