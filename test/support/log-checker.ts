import { faultsOfCalls } from './call-faults.ts';
import { faultsOfLog, type LogAllowances } from './log-faults.ts';
import { logNameOf, type SessionLog } from './session-logs.ts';
import { faultsOfStreams } from './stream-faults.ts';
import type { SessionTranscript } from './transcript.ts';
import type { Violation } from './violation.ts';

export { type CallOutcome, outcomesOf } from './call-faults.ts';
export { faultsOfGrowth } from './log-faults.ts';
export type { Violation, ViolationKind } from './violation.ts';

/** The records of a run. */
export interface Evidence extends LogAllowances {
  readonly transcripts: readonly SessionTranscript[];
  /** The logs from `readLogs`. Without them, only the records of clients are checked. */
  readonly logs?: ReadonlyMap<string, SessionLog>;
  /** The marks of the calls that servers began to run, each as often as it was begun. */
  readonly executions?: readonly string[];
}

/**
 * Finds all violations of a run: in the streams of clients, in the logs, and in the calls. Pure. Throws without
 * evidence, because an empty list would then mean nothing.
 */
export function violationsOf({ transcripts, logs, executions = [], ...allowances }: Evidence): readonly Violation[] {
  if (transcripts.flatMap(({ connections }) => connections).length === 0) throw new Error('Nothing was recorded');
  return transcripts.flatMap((transcript) => {
    const { name, sessionId, calls } = transcript;
    const repeatable = new Set(calls.flatMap(({ id, isOnce }) => (isOnce ? [] : [JSON.stringify(id)])));
    const log = logs?.get(logNameOf(sessionId));
    return [
      ...(log === undefined ? [] : faultsOfLog(name, log, { ...allowances, repeatable })),
      // Without any logs there is none to miss an event in.
      ...faultsOfStreams(transcript, log, { ...allowances, isWithoutLogs: logs === undefined }),
      ...faultsOfCalls(transcript, executions),
    ];
  });
}
