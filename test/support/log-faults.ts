import { compareLogPositions, type LogPosition } from '../../src/core/protocol/wire/event-id.ts';
import type { LogEntry, SessionLog } from './session-logs.ts';
import { isResponseMessage, messageOf } from './transcript.ts';
import { createViolations, type Violation } from './violation.ts';

const textOf = ({ epoch, seq }: LogPosition): string => `${epoch}-${seq}`;

/** The exceptions for the checks of logs. */
export interface LogAllowances {
  /** The ids of calls, as JSON, that only read. After the loss of an owner, the next one may run and answer them again. */
  readonly repeatable?: ReadonlySet<string>;
  /** The store lost data in this test, so earlier entries may be missing. */
  readonly isDataLost?: boolean;
  /** An owner was lost at that time, too, so nobody has what it had (docs/redis-failures.md). */
  readonly isOwnerLost?: boolean;
}

/** True if an entry may be missing in a log: it was evicted, or lost before the owner registered the session again. */
export function mayBeMissing(
  place: LogPosition,
  { entries }: SessionLog,
  { isDataLost = false, isOwnerLost = false }: LogAllowances,
): boolean {
  const [first] = entries;
  if (first === undefined || compareLogPositions(place, first) < 0) return true;
  // The marker of a registration has the number of the newest event that the owner had written. That of a takeover stands for
  // an owner that did not register again.
  const isMarker = (entry: LogEntry): boolean => isRegistration(entry) || (isOwnerLost && isTakeover(entry));
  return isDataLost && entries.some((entry) => isMarker(entry) && compareLogPositions(place, entry) <= 0);
}

const isTakeover = ({ stream, seq }: LogEntry): boolean => stream === undefined && seq === 0;
const isRegistration = ({ stream, seq }: LogEntry): boolean => stream === undefined && seq > 0;

/** Finds violations inside a log. */
export function faultsOfLog(name: string, log: SessionLog, allowances: LogAllowances = {}): readonly Violation[] {
  const { found, add } = createViolations(`the log of ${name}`);
  const newestOf = new Map<number, LogEntry>();
  const answers = new Map<string, LogEntry>();
  const progressOf = new Map<string, number>();
  let last: LogEntry | undefined;

  for (const entry of log.entries) {
    const { stream, previous, seq, epoch } = entry;
    const place = textOf(entry);
    if (last !== undefined && epoch < last.epoch) add('old_epoch', `${place} was appended after ${textOf(last)}`);
    else if (last !== undefined && compareLogPositions(last, entry) >= 0)
      add('order', `${place} follows ${textOf(last)}`);
    else if (last?.epoch === epoch && seq !== last.seq + 1 && !(allowances.isDataLost && isRegistration(entry)))
      add('gap', `${place} follows ${textOf(last)}`);
    last = entry;
    if (stream === undefined) continue;

    const before = newestOf.get(stream);
    const isDirect =
      before === undefined
        ? previous === undefined || mayBeMissing(previous, log, allowances)
        : previous !== undefined && compareLogPositions(previous, before) === 0;
    const isLost = previous !== undefined && before !== undefined && compareLogPositions(previous, before) > 0;
    if (!isDirect && !(isLost && mayBeMissing(previous, log, allowances))) {
      const is = previous === undefined ? 'nothing' : textOf(previous);
      add(
        'chain',
        `${place} of stream ${stream} comes after ${is} and not after ${before ? textOf(before) : 'nothing'}`,
      );
    }
    if (before?.last) add('order', `${place} of stream ${stream} comes after its last event ${textOf(before)}`);
    newestOf.set(stream, entry);

    const message = messageOf(entry);
    if (message === undefined) continue;
    if (isResponseMessage(message)) {
      const id = JSON.stringify(message.id);
      const earlier = answers.get(id);
      const isElsewhere = earlier?.epoch !== epoch || earlier.stream !== stream;
      // A harmless request whose answer was lost with a connection between instances runs again.
      const isRepeated = isElsewhere && allowances.repeatable?.has(id) === true;
      if (earlier !== undefined && !isRepeated) add('two_answers', `${textOf(earlier)} and ${place} both answer ${id}`);
      answers.set(id, entry);
    } else if (message.method === 'notifications/progress') {
      const { progressToken, progress } = message.params;
      const token = JSON.stringify(progressToken);
      const value = progressOf.get(token) ?? Number.NEGATIVE_INFINITY;
      if (progress <= value) add('double', `${place} has progress ${progress} of ${token} after ${value}`);
      progressOf.set(token, progress);
      if (answers.has(token)) add('order', `${place} has progress of ${token} after its answer`);
    }
  }
  return found;
}

/** Finds violations between two reads of a log. Between them, entries may be appended and the oldest evicted. */
export function faultsOfGrowth(name: string, before: SessionLog, after: SessionLog): readonly Violation[] {
  const { found, add } = createViolations(`the log of ${name}`);
  const newest = before.entries.at(-1);
  const known = new Map(before.entries.map((entry) => [textOf(entry), entry]));
  for (const entry of after.entries) {
    const place = textOf(entry);
    const earlier = known.get(place);
    if (earlier !== undefined && (earlier.data !== entry.data || earlier.stream !== entry.stream)) {
      add('rewritten', `${place} has changed`);
    }
    if (earlier !== undefined || newest === undefined || compareLogPositions(entry, newest) > 0) continue;
    add(entry.epoch < newest.epoch ? 'old_epoch' : 'rewritten', `${place} was appended after ${textOf(newest)}`);
  }
  const oldest = after.entries[0];
  const left = new Set(after.entries.map(textOf));
  for (const entry of before.entries) {
    const isEvicted = oldest !== undefined && compareLogPositions(entry, oldest) < 0;
    if (!isEvicted && !left.has(textOf(entry))) add('rewritten', `${textOf(entry)} is gone, and was not evicted`);
  }
  return found;
}
