import {
  compareLogPositions,
  type EventId,
  finalSeq,
  formatEventId,
  parseEventId,
} from '../../src/core/protocol/wire/event-id.ts';
import { type LogAllowances, mayBeMissing } from './log-faults.ts';
import type { LogEntry, SessionLog } from './session-logs.ts';
import type { RecordedConnection, SessionTranscript } from './transcript.ts';
import { createViolations, type Violation, type Violations } from './violation.ts';

/** All known events of a session, from its log and all its connections. */
interface Known {
  readonly logged: ReadonlyMap<string, LogEntry>;
  readonly contents: Map<string, string>;
  /** The ids of the events with a message, by stream. */
  readonly byStream: Map<number, EventId[]>;
}

/**
 * Finds violations in the streams of one client (P4, P5). Every connection must deliver the events of its stream in
 * order, each once, directly after the event of the resume, and with the content of the log.
 * @param log undefined if the session has none; `isWithoutLogs` if no logs were read
 */
export function faultsOfStreams(
  { name, connections, isEnded }: SessionTranscript,
  log: SessionLog | undefined,
  { isWithoutLogs = false, ...allowances }: LogAllowances & { readonly isWithoutLogs?: boolean } = {},
): readonly Violation[] {
  const violations = createViolations(`session ${name}`);
  const known = collect(connections, log, violations);
  for (const [number, connection] of connections.entries()) {
    checkConnection(`connection ${number}`, connection, known, violations);
  }
  for (const [id, data] of known.contents) {
    const place = parseEventId(id);
    const entry = known.logged.get(id);
    if (entry !== undefined && entry.data !== data) violations.add('two_contents', `${id} is another event in the log`);
    if (entry !== undefined || place === undefined || isEnded || isWithoutLogs) continue;
    const isExcused = log === undefined ? allowances.isDataLost === true : mayBeMissing(place, log, allowances);
    if (!isExcused) violations.add('not_in_log', `${id} was seen`);
  }
  return violations.found;
}

function collect(connections: readonly RecordedConnection[], log: SessionLog | undefined, { add }: Violations): Known {
  const logged = new Map<string, LogEntry>();
  const contents = new Map<string, string>();
  const ids = new Map<string, EventId>();
  for (const entry of log?.entries ?? []) {
    if (entry.stream === undefined) continue;
    const id = { stream: entry.stream, epoch: entry.epoch, seq: entry.seq };
    logged.set(formatEventId(entry.stream, entry), entry);
    if (entry.data !== '') ids.set(formatEventId(entry.stream, entry), id);
  }
  const streamOf = new Map<string, number>();
  for (const { id, data } of connections.flatMap(({ events }) => events)) {
    const parsed = id === undefined ? undefined : parseEventId(id);
    if (id === undefined || parsed === undefined || parsed.seq === finalSeq || data === undefined || data === '')
      continue;
    const key = textOf(parsed);
    const other = contents.get(key);
    if (other !== undefined && other !== data) add('two_contents', `${id} stands for two events`);
    const place = `${parsed.epoch}-${parsed.seq}`;
    if ((streamOf.get(place) ?? parsed.stream) !== parsed.stream) add('two_contents', `${place} is in two streams`);
    streamOf.set(place, parsed.stream);
    contents.set(key, data);
    ids.set(key, parsed);
  }
  const byStream = new Map<number, EventId[]>();
  for (const id of [...ids.values()].sort(compareLogPositions)) {
    byStream.set(id.stream, [...(byStream.get(id.stream) ?? []), id]);
  }
  return { logged, contents, byStream };
}

function checkConnection(
  where: string,
  { method, after, status, events, call, isWhole }: RecordedConnection,
  { logged, byStream }: Known,
  { add }: Violations,
): void {
  if (status === 0) return;
  if (method === 'GET' && status !== 200 && status !== 204)
    add('status', `${where}: ${status} for a GET after ${after}`);
  const resumed = after === undefined ? undefined : parseEventId(after);
  if (after !== undefined && resumed === undefined) add('malformed', `${where}: resumed from ${after}`);
  let stream = resumed?.stream ?? (call === undefined ? 0 : undefined);
  /** The last event of the client, `nothing`, or `unknown` after a reported break or without an id. */
  let has: EventId | 'nothing' | 'unknown' = resumed ?? (method === 'POST' ? 'nothing' : 'unknown');
  let last: EventId | undefined;
  // Without ids, a client gets what the log did not take in time, up to the end of the connection.
  let isUnlogged = false;

  for (const [index, { id, data, event }] of events.entries()) {
    const at = `${where}, event ${index}`;
    if (event === 'gap') {
      has = 'unknown';
      continue;
    }
    // Only when to come back: what a drain says.
    if (id === undefined && data === undefined) continue;
    const place = id === undefined ? undefined : parseEventId(id);
    const isLost = data?.includes('"reason":"history_lost"') === true;
    if ((isLost && place === undefined) || place?.seq === finalSeq) continue;
    if (id === undefined && call !== undefined) {
      isUnlogged = true;
      continue;
    }
    if (isUnlogged) add('malformed', `${at}: ${id} behind an event without an id`);
    if (place === undefined) {
      add('malformed', `${at}: ${id === undefined ? 'no id' : `the id ${id}`}`);
      continue;
    }
    stream ??= place.stream;
    if (place.stream !== stream) add('foreign', `${at}: ${id} is not of stream ${stream}`);
    if (data === undefined || data === '') {
      if (index > 0) add('order', `${at}: a priming event ${id} behind others`);
      if (resumed !== undefined && compareLogPositions(place, resumed) !== 0) {
        add('order', `${at}: a priming event ${id} on a stream that was resumed from ${after}`);
      }
      has = place;
      continue;
    }
    const floor = last ?? resumed;
    if (floor !== undefined && compareLogPositions(place, floor) === 0) add('double', `${at}: ${id} again`);
    else if (floor !== undefined && place.epoch < floor.epoch) {
      add('old_epoch', `${at}: ${id} after ${textOf(floor)}`);
    } else if (floor !== undefined && compareLogPositions(place, floor) < 0) {
      add('order', `${at}: ${id} after ${textOf(floor)}`);
    }
    const lacking = has === 'unknown' ? undefined : missedBetween(has, place, logged, byStream.get(place.stream) ?? []);
    if (lacking !== undefined) {
      add('gap', `${at}: ${id} after ${typeof has === 'string' ? has : textOf(has)}, without ${lacking}`);
    }
    last = place;
    has = place;
  }
  if (isUnlogged && isWhole && !/"(?:result|error)":/.test(events.at(-1)?.data ?? ''))
    add('malformed', `${where}: events without ids, and no answer at their end`);
  // 204: there is nothing more, and there will not be. (An orderly end says only that the client may come again.)
  const newest = stream === undefined ? undefined : byStream.get(stream)?.at(-1);
  if (status !== 204 || newest === undefined || typeof has === 'string' || compareLogPositions(newest, has) <= 0)
    return;
  if (has.seq !== finalSeq) add('gap', `${where}: 204 after ${after}, without ${textOf(newest)}`);
}

/** A place as text, whatever requests its id names. */
const textOf = ({ stream, epoch, seq }: EventId): string => formatEventId(stream, { epoch, seq });

/** An event of the stream between two others, if one is known or the log's chain shows it. */
function missedBetween(
  has: EventId | 'nothing',
  place: EventId,
  logged: Known['logged'],
  ids: readonly EventId[],
): string | undefined {
  const isBehind = (one: { epoch: number; seq: number }): boolean =>
    has === 'nothing' || compareLogPositions(one, has) > 0;
  const between = ids.find((one) => isBehind(one) && compareLogPositions(one, place) < 0);
  if (between !== undefined) return textOf(between);
  const previous = logged.get(textOf(place))?.previous;
  // An event without a message is not missed.
  if (previous === undefined || !isBehind(previous)) return undefined;
  const entry = logged.get(formatEventId(place.stream, previous));
  return entry === undefined || entry.data !== '' ? formatEventId(place.stream, previous) : undefined;
}
