import type {
  AppendOutcome,
  EventLog,
  LogLimits,
  NewEvent,
  ReadOutcome,
  StoredEvent,
} from '../../../core/store/event-log.ts';
import { forgottenStream, readOutcomeOf, requireConsecutive, selectEvents } from '../../../core/store/log-rules.ts';
import { formatPending, formatRequestId, formatStreamTail, parseLogPosition, textOf } from '../codec.ts';
import type { RedisAccess } from '../redis-access.ts';
import type { ScriptArgument, ScriptReply } from '../script.ts';
import { fromSegment, toSegments } from './segments.ts';

/** The approximate limit of the bytes of one read, so that a reader of a large log does not block Redis for others. */
const maxReadBytes = 1_048_576;

const appendOutcomes = ['stored', 'already', 'fenced', 'no_record'] as const;

/** Stores the events of each session in a Redis Stream, in segments. */
export function createRedisLog({ runScript, keys, lifetimes }: RedisAccess, limits: LogLimits): EventLog {
  const { maxEvents, maxBytes, maxAgeMs, evicted: evictedEvents } = limits;

  return {
    async append(key, epoch, expectedTail, events): Promise<AppendOutcome> {
      requireConsecutive(expectedTail, events);
      const { record, log, tails, pending } = keys.session(key);
      const limitsAndTimes = [maxEvents, maxBytes, maxAgeMs, lifetimes.logMs, lifetimes.recordMs];
      const reply = await runScript(
        'append',
        [record, log, tails, pending],
        [epoch, expectedTail, ...limitsAndTimes, ...batchArguments(epoch, events, limits)],
      );
      const [code, tail, evicted = 0] = reply as [number, number, number?];
      if (evicted > 0) evictedEvents?.add(evicted);
      const outcome = appendOutcomes[code - 1];
      return outcome === undefined ? { outcome: 'gap', tail } : { outcome };
    },

    async read(key, stream, after, limit): Promise<ReadOutcome> {
      const { record, log, tails } = keys.session(key);
      const position = after === undefined ? ['', ''] : [after.epoch, after.seq];
      const args = [stream, ...position, Math.max(1, limit), maxReadBytes, maxAgeMs];
      const reply = (await runScript('read', [record, log, tails], args)) as readonly ScriptReply[];
      if (reply[0] === 3) return { outcome: 'unknown_stream' };
      if (reply[0] === 4) return { outcome: 'in_future' };
      if (reply[0] === 2) return forgottenStream;
      const newest = parseLogPosition(textOf(reply[1]));
      const events = selectEvents(parseSegments(reply.slice(3)), stream, after, Math.max(1, limit));
      return readOutcomeOf(events, after, { newest, ended: reply[2] === 1 });
    },
  };
}

/** The arguments of `append.lua` for a batch: the segments, and the changes of tails and pending requests. */
function batchArguments(epoch: number, events: readonly NewEvent[], limits: LogLimits): ScriptArgument[] {
  const segments = toSegments(epoch, events, limits);
  const tails = new Map<number, string>();
  const settled = new Set<string>();
  const opened = new Map<string, Buffer>();
  let newestStream = -1;
  for (let index = 0; index < events.length; index += 1) {
    const { stream, seq, last, opens, settles } = events[index] as NewEvent;
    newestStream = Math.max(newestStream, stream);
    // A run of events of one stream needs a single tail.
    if (events[index + 1]?.stream !== stream)
      tails.set(stream, formatStreamTail({ newest: { epoch, seq }, ended: last }));
    if (settles !== undefined) {
      const id = formatRequestId(settles);
      settled.add(id);
      opened.delete(id);
    }
    if (opens === undefined) continue;
    for (const [order, call] of opens.entries()) {
      opened.set(formatRequestId(call.id), formatPending(call, { epoch, seq }, order));
    }
  }
  return [
    events.at(-1)?.seq ?? '',
    newestStream,
    segments.length,
    ...segments.flatMap(({ lastSeq, header, data }) => [lastSeq, header, data]),
    tails.size,
    ...[...tails].flat(),
    settled.size,
    ...settled,
    opened.size,
    ...[...opened].flat(),
  ];
}

function parseSegments(flat: readonly ScriptReply[]): StoredEvent[] {
  return Array.from({ length: flat.length / 3 }, (_, index) => {
    const [entryId, header, data] = flat.slice(index * 3, index * 3 + 3);
    return fromSegment(entryId ?? null, header ?? null, data ?? null);
  }).flat();
}
