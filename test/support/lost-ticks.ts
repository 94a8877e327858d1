import { type LogPosition, parseEventId } from '../../src/core/protocol/wire/event-id.ts';
import { logNameOf, type SessionLog } from './session-logs.ts';
import { messageOf, type SessionTranscript } from './transcript.ts';
import { createViolations, type Violation } from './violation.ts';

/**
 * Finds numbers of a process that a client lacks, although it has a later one of the same process and epoch, and nobody
 * told it of a gap. The numbers belong to no call (`trafficServer`, `tickMs`), so they arrive on any stream of the session.
 *
 * The client knows that it lacks messages if the connection of a call broke, or if it was told `outcome_unknown`. Before
 * the first event id, it has nothing to resume from. Numbers that the log has on such a stream are not lost silently. Nor
 * are numbers between two events, if the log has lost places between them: they may have been on that stream.
 */
export function lostTicks(
  { name, sessionId, connections }: SessionTranscript,
  logs: ReadonlyMap<string, SessionLog>,
): readonly Violation[] {
  const { found, add } = createViolations(`session ${name}`);
  const events = connections.flatMap((connection) => connection.events);
  const isTold = events.some(({ event, data }) => event === 'gap' || data?.includes('"reason":"history_lost"'));
  if (isTold) return found;
  const isNoticed = ({ call, isWhole, events, text }: SessionTranscript['connections'][number]): boolean =>
    call !== undefined &&
    events.every(({ id }) => id === undefined) &&
    (!isWhole || [text, ...events.map(({ data }) => data)].some((told) => told?.includes('"outcome_unknown"')));
  const hasNoticed = connections.some(isNoticed);
  const entries = logs.get(logNameOf(sessionId))?.entries ?? [];
  const known = new Set(events.map(({ id }) => parseEventId(id ?? '')?.stream));
  const unresumable = hasNoticed ? entries.filter(({ stream }) => stream !== 0 && !known.has(stream)) : [];
  const isUnresumable = (of: string, n: number): boolean =>
    unresumable.some(({ data }) => {
      const message = data.includes('notifications/ticked') ? messageOf({ data }) : undefined;
      return message !== undefined && of.startsWith(`process ${message.params.pid},`) && message.params.n === n;
    });
  const withoutId = new Set<string>();
  const ticks = new Map<string, Map<number, LogPosition>>();
  for (const { id, data } of events) {
    if (data?.includes('notifications/ticked') !== true) continue;
    const message = messageOf({ data });
    if (message === undefined) continue;
    const { pid, n }: { pid: number; n: number } = message.params;
    const position = parseEventId(id ?? '');
    // While the store is away, a client gets messages without event ids (docs/decisions/0070).
    if (position === undefined) withoutId.add(`process ${pid}, ${n}`);
    const key = `process ${pid}, epoch ${position?.epoch}`;
    if (position !== undefined) ticks.set(key, (ticks.get(key) ?? new Map()).set(n, position));
  }
  for (const [key, seen] of ticks) {
    const numbers = [...seen.keys()].sort((a, b) => a - b);
    const [first = 0, last = 0] = [numbers[0], numbers.at(-1)];
    const isForgotten = (n: number): boolean => {
      const before = seen.get(numbers.findLast((other) => other < n) ?? first) as LogPosition;
      const after = seen.get(numbers.find((other) => other > n) ?? last) as LogPosition;
      const places = new Set(
        [...entries, ...events.map(({ id }) => parseEventId(id ?? ''))].flatMap((at) =>
          at?.epoch === before.epoch ? [at.seq] : [],
        ),
      );
      const between = Array.from({ length: Math.max(0, after.seq - before.seq - 1) }, (_, i) => before.seq + 1 + i);
      return hasNoticed && between.some((seq) => !places.has(seq));
    };
    const hasWithoutId = (n: number): boolean => withoutId.has(`${key.split(', ')[0]}, ${n}`);
    const lacking = Array.from({ length: last - first }, (_, index) => first + index).filter(
      (n) => !seen.has(n) && !hasWithoutId(n) && !isUnresumable(key, n) && !isForgotten(n),
    );
    if (lacking.length > 0) add('lost', `${key}: without ${lacking.join(', ')} of ${first} to ${last}`);
  }
  return found;
}
