import type { BackendEnd } from '../../backend/backend.ts';
import { helpIfEnded, helpIfSilent, withCheck } from './start-help.ts';

/** The reason of a failure, from a small fixed set, for metrics and programs. */
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

/** A failure of a server. */
export interface ServerFailure {
  readonly reason: FailureReason;
  /** The reason as a sentence of the gateway, without paths, addresses or output of the server (P12). */
  readonly why: string;
  /** How to fix the failure, if known. */
  readonly help?: string | undefined;
}

/** What only an operator may read about a failure: it can contain paths, addresses and output of the server (P12). */
export interface FailureDetails {
  /** The cause as a complete sentence. */
  readonly detail: string;
  /** How to fix the failure, if `detail` does not say so. */
  readonly help: string | undefined;
  /** The last lines that the server wrote outside the protocol. */
  readonly output: readonly string[];
}

const sentences: Readonly<Record<FailureReason, string>> = {
  not_found: 'The command of the server was not found.',
  not_started: 'The server could not be started.',
  unreachable: 'The server could not be reached, or refused access.',
  exited: 'The server exited',
  disconnected: 'The server closed the connection.',
  no_answer: 'The server did not send a valid MCP answer in time.',
  crash_loop: 'The server exited repeatedly. The gateway waits before the next start.',
  line_too_long: 'The server was stopped because it wrote a line longer than 64 MiB.',
  memory_limit: 'The server was killed because it used more memory than --defaults.process.memory.',
};

const helps: Readonly<Partial<Record<FailureReason, string>>> = {
  not_found:
    'Install the command, or correct the configuration. mcp-gangway check shows where the gateway looked for it.',
  not_started: 'Run mcp-gangway check to see the cause.',
  unreachable: 'Run mcp-gangway check to see the cause.',
  crash_loop: 'Read the stderr of the server: on the status page, or in the log with --log-level info,stderr=debug.',
  no_answer: withCheck(helpIfSilent),
};

/** Returns a failure with its sentence and help. */
export const serverFailure = (reason: FailureReason): ServerFailure => ({
  reason,
  why: sentences[reason],
  help: helps[reason],
});

/**
 * Returns the failure that a backend end means; undefined if the gateway itself closed the backend.
 * @param isRemote true if the server runs elsewhere, so that only a connection ended
 * @param isAtStart true if the backend ended before it had answered anything
 */
export function serverFailureOfEnd(end: BackendEnd, isRemote: boolean, isAtStart: boolean): ServerFailure | undefined {
  const { reason, exitCode, signal, isNotFound = false } = end;
  switch (reason) {
    case 'closed':
      return undefined;
    case 'failed':
      return serverFailure(isRemote ? 'unreachable' : isNotFound ? 'not_found' : 'not_started');
    case 'exited':
      if (isRemote) return serverFailure('disconnected');
      return {
        reason,
        why: `${sentences.exited}${describeExit(exitCode, signal)}.`,
        help: isAtStart ? withCheck(helpIfEnded(end.lastOutput)) : undefined,
      };
    default:
      return serverFailure(reason);
  }
}

/** Returns the details of the end of a backend. The operator sees its output next to the help. */
export const detailsOfEnd = (
  { reason, detail, lastOutput: output = [] }: BackendEnd,
  isAtStart: boolean,
): FailureDetails => ({ detail, help: reason === 'exited' && isAtStart ? helpIfEnded(output) : undefined, output });

function describeExit(exitCode: BackendEnd['exitCode'], signal: BackendEnd['signal']): string {
  if (typeof exitCode === 'number') return ` with code ${exitCode}`;
  return typeof signal === 'string' ? ` after ${signal}` : '';
}
