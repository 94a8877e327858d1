import { faultsOfCalls } from './call-faults.ts';
import { faultsOfLog, type LogAllowances } from './log-faults.ts';
import { logNameOf, type SessionLog } from './session-logs.ts';
import { faultsOfStreams } from './stream-faults.ts';
import type { SessionTranscript } from './transcript.ts';
import type { Violation } from './violation.ts';

export { type CallOutcome, outcomesOf } from './call-faults.ts';
export { faultsOfGrowth } from './log-faults.ts';
export type { Violation, ViolationKind } from './violation.ts';

/** What a run left behind. */
export interface Evidence extends LogAllowances {
  readonly transcripts: readonly SessionTranscript[];
  /** The logs as `readLogs` gives them; without them only what clients saw is checked, each against its own. */
  readonly logs?: ReadonlyMap<string, SessionLog>;
  /** The marks of the calls that servers began to run, each as often as it was begun. */
  readonly executions?: readonly string[];
}

/**
 * Everything that is wrong with a run: with the streams that clients saw, with the logs that they came from, and with the
 * calls. Pure: it reads what was recorded. An empty list from empty evidence says nothing, so that it throws then.
 */
export function violationsOf({ transcripts, logs, executions = [], ...allowances }: Evidence): readonly Violation[] {
  if (transcripts.flatMap(({ connections }) => connections).length === 0) throw new Error('Nothing was recorded');
  return transcripts.flatMap((transcript) => {
    const { name, sessionId } = transcript;
    const log = logs?.get(logNameOf(sessionId));
    return [
      ...(log === undefined ? [] : faultsOfLog(name, log, allowances)),
      // Without any logs there is none to miss an event in.
      ...faultsOfStreams(transcript, log, { ...allowances, isWithoutLogs: logs === undefined }),
      ...faultsOfCalls(transcript, executions),
    ];
  });
}
