import { parseEventId } from '../../src/protocol/wire/event-id.ts';
import { messageOf, type SessionTranscript } from './transcript.ts';
import { createViolations, type Violation } from './violation.ts';

/**
 * Finds numbers of a process that a client lacks, although it has a later one of the same process and epoch, and nobody
 * told it of a gap. The numbers belong to no call (`trafficServer`, `tickMs`), so they arrive on any stream of the session.
 */
export function lostTicks({ name, connections }: SessionTranscript): readonly Violation[] {
  const { found, add } = createViolations(`session ${name}`);
  const events = connections.flatMap((connection) => connection.events);
  const isTold = events.some(({ event, data }) => event === 'gap' || data?.includes('"reason":"history_lost"'));
  if (isTold) return found;
  const ticks = new Map<string, Set<number>>();
  for (const { id, data } of events) {
    if (data?.includes('notifications/ticked') !== true) continue;
    const message = messageOf({ data });
    if (message === undefined) continue;
    const { pid, n }: { pid: number; n: number } = message.params;
    const key = `process ${pid}, epoch ${parseEventId(id ?? '')?.epoch}`;
    ticks.set(key, (ticks.get(key) ?? new Set()).add(n));
  }
  for (const [key, seen] of ticks) {
    const [first, last] = [Math.min(...seen), Math.max(...seen)];
    const lacking = Array.from({ length: last - first }, (_, index) => first + index).filter((n) => !seen.has(n));
    if (lacking.length > 0) add('lost', `${key}: without ${lacking.join(', ')} of ${first} to ${last}`);
  }
  return found;
}
