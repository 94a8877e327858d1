import { parseEventId } from '../../src/core/protocol/wire/event-id.ts';
import type { SessionLog } from './session-logs.ts';
import { isResponseMessage, messageOf, type SessionTranscript } from './transcript.ts';
import { createViolations, type Violation } from './violation.ts';

/** What the answer of a call of `traffic-server.mjs` says of the messages before it. */
interface Announced {
  readonly counted?: number;
  readonly told?: number;
}

/**
 * Finds messages of an answered call that its client lacks, although nobody told it of a gap: the progress that the call
 * has reported, and with `hasOwnProcess` what it has told outside of the call. Of a process that several users share,
 * such a message may go to nobody (docs/decisions/0149).
 *
 * A client knows that it may lack messages if it was told of a gap, or if the connection of a call ended before its first
 * event id. It does not know it if a call that only reads ran again with another owner before its first event id:
 * docs/redis-failures.md says so. With the `log`, such messages are not lost.
 */
export function lostReports(
  { name, calls, connections }: SessionTranscript,
  { hasOwnProcess, log }: { readonly hasOwnProcess: boolean; readonly log?: SessionLog | undefined },
): readonly Violation[] {
  const { found, add } = createViolations(`session ${name}`);
  const events = connections.flatMap((connection) => connection.events);
  if (events.some(({ event, data }) => event === 'gap' || data?.includes('"reason":"history_lost"'))) return found;
  const hasLostStream = connections.some(
    ({ call, isWhole, events: own }) => call !== undefined && !isWhole && own.every(({ id }) => id === undefined),
  );
  /** The numbers of the messages, by call: those of its progress, and those with its mark. */
  const progress = new Map<string, Set<number>>();
  const told = new Map<string, Set<number>>();
  const note = (numbers: Map<string, Set<number>>, key: string, number: number): void => {
    numbers.set(key, (numbers.get(key) ?? new Set()).add(number));
  };
  const announced = new Map<string, Announced>();
  for (const event of events) {
    const message = messageOf(event);
    if (message === undefined) continue;
    const { method, params, id, result } = message;
    if (method === 'notifications/progress') note(progress, String(params.progressToken), params.progress);
    if (method === 'notifications/told') note(told, params.mark, params.n);
    const text = isResponseMessage(message) ? result?.content?.[0]?.text : undefined;
    if (text !== undefined) announced.set(String(id), JSON.parse(text));
  }
  const seen = new Set(events.map(({ id }) => (id === undefined ? undefined : parseEventId(id)?.stream)));
  for (const entry of log === undefined ? [] : onRepeatedStreams(log)) {
    const { method, params } = messageOf(entry) ?? {};
    if (method === 'notifications/told' && !seen.has(entry.stream)) note(told, params.mark, params.n);
  }
  for (const { id, mark } of calls) {
    const { counted = 0, told: tellings = 0 } = announced.get(String(id)) ?? {};
    const check = (what: string, count: number, seen: ReadonlySet<number> = new Set()): void => {
      const lacking = Array.from({ length: count }, (_, index) => index + 1).filter((number) => !seen.has(number));
      if (lacking.length > 0) add('lost', `${id}: without ${what} ${lacking.join(', ')} of ${count}`);
    };
    check('progress', counted, progress.get(String(id)));
    if (hasOwnProcess && !hasLostStream) check('message', tellings, told.get(mark));
  }
  return found;
}

/** What a log has on streams whose call was answered on another stream, too. */
function onRepeatedStreams({ entries }: SessionLog): SessionLog['entries'] {
  const streamsOf = new Map<string, Set<number>>();
  for (const entry of entries) {
    const message = messageOf(entry);
    if (message === undefined || !isResponseMessage(message) || entry.stream === undefined) continue;
    const id = JSON.stringify(message.id);
    streamsOf.set(id, (streamsOf.get(id) ?? new Set()).add(entry.stream));
  }
  const repeated = new Set([...streamsOf.values()].flatMap((streams) => (streams.size > 1 ? [...streams] : [])));
  return entries.filter(({ stream }) => stream !== undefined && repeated.has(stream));
}
