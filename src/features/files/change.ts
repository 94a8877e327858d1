import type { NewEvent, PendingCall, StoredEvent } from '../../core/store/event-log.ts';
import type { LogContents, LogEntry } from '../../core/store/memory/memory-log.ts';
import type { Tombstone } from '../../core/store/memory/memory-sessions.ts';
import type { StoredSession } from '../../core/store/memory/memory-tables.ts';
import type { LogState, RecordChanges, SessionRecord, StreamTail } from '../../core/store/session-records.ts';
import type { ValueKind } from '../../core/store/shared/shared-data.ts';

/**
 * A change of the tables, as the files keep it. A change is an effect, not a request: whether a request may have its
 * effect was decided before. A change of an unknown session has no effect.
 */
export type Change =
  /** The whole session, in place of what was known under its key. */
  | { readonly kind: 'session'; readonly key: string; readonly session: StoredSession }
  | { readonly kind: 'append'; readonly key: string; readonly epoch: number; readonly events: readonly NewEvent[] }
  | { readonly kind: 'amend'; readonly key: string; readonly changes: RecordChanges }
  | ({ readonly kind: 'owner'; readonly key: string } & Ownership)
  | { readonly kind: 'end'; readonly key: string; readonly tombstone: Tombstone }
  | {
      readonly kind: 'value';
      readonly of: ValueKind;
      readonly name: string;
      readonly value: Buffer;
      readonly ttlMs: number;
    };

/** Who owns a session, and the takeovers that led there. */
export type Ownership = Pick<SessionRecord, 'owner' | 'epoch'> &
  Pick<StoredSession, 'takeovers'> & { readonly term: number | undefined };

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** The parts of a change: JSON, and bytes that JSON cannot carry as they are. */
class Parts {
  readonly bytes: Buffer[] = [];

  /** Adds bytes and returns their length for the JSON part; -1 for absent bytes. */
  add(bytes: Buffer | undefined): number {
    if (bytes === undefined) return -1;
    if (bytes.length > 0) this.bytes.push(bytes);
    return bytes.length;
  }
}

/** Formats a change as the length of its JSON part (u32), the JSON part and the bytes. */
export function formatChange(change: Change): Buffer[] {
  const parts = new Parts();
  const json = Buffer.from(JSON.stringify(toJson(change, parts)));
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32LE(json.length);
  return [length, json, ...parts.bytes];
}

function toJson(change: Change, parts: Parts): Json {
  switch (change.kind) {
    case 'append':
      return ['append', change.key, change.epoch, change.events.map((event) => eventToJson(event, parts))];
    case 'session':
      return ['session', change.key, sessionToJson(change.session, parts)];
    case 'amend':
      return ['amend', change.key, parts.add(change.changes.clientState), parts.add(change.changes.clientSaid)];
    case 'owner':
      return ['owner', change.key, change.owner, change.epoch, takeoversToJson(change.takeovers), change.term ?? null];
    case 'end': {
      const { expiresAtMs, epoch, wornOutFrom = null } = change.tombstone;
      return ['end', change.key, finite(expiresAtMs), epoch, wornOutFrom];
    }
    case 'value':
      return ['value', change.of, change.name, change.ttlMs, parts.add(change.value)];
  }
}

function sessionToJson(session: StoredSession, parts: Parts): Json {
  const { record, log } = session;
  const members = Object.entries(record).map(([name, value]) => [
    name,
    Buffer.isBuffer(value) ? { bytes: parts.add(value) } : value,
  ]);
  return {
    record: Object.fromEntries(members),
    expiresAtMs: finite(session.expiresAtMs),
    takeovers: takeoversToJson(session.takeovers),
    term: session.term ?? null,
    log: [log.epoch, log.tailSeq, log.state.newestStream],
    tails: Array.from(log.state.tails, ([stream, { newest, ended }]) => [stream, newest.epoch, newest.seq, ended]),
    pending: log.state.pending.map((call) => callToJson(call, parts)),
    entries: Array.from(log.entries, ({ event, storedAtMs }) => [
      event.epoch,
      ...(eventToJson(event, parts) as readonly Json[]),
      storedAtMs,
    ]),
  };
}

function eventToJson(event: NewEvent | StoredEvent, parts: Parts): Json {
  const { stream, seq, previous, data, last } = event;
  const json = [stream, seq, previous?.epoch ?? null, previous?.seq ?? null, last, parts.add(data)];
  const { opens, settles } = event as NewEvent;
  if (opens === undefined && settles === undefined) return json;
  return [...json, settles ?? null, (opens ?? []).map((call) => callToJson(call, parts))];
}

const callToJson = ({ stream, id, method, name, text, client }: PendingCall, parts: Parts): Json => [
  stream,
  id,
  method,
  name ?? null,
  parts.add(text),
  ...(client === undefined ? [] : [client]),
];

const takeoversToJson = ({ count, lastMs }: StoredSession['takeovers']): Json => [count, finite(lastMs)];

/** JSON has no infinity. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** Reads the bytes of a change in the order in which they were added. */
class Bytes {
  readonly #content: Buffer;
  #at: number;

  constructor(content: Buffer, at: number) {
    this.#content = content;
    this.#at = at;
  }

  take(length: number): Buffer {
    const bytes = this.#content.subarray(this.#at, this.#at + length);
    this.#at += length;
    return bytes;
  }

  takeIfPresent(length: number): Buffer | undefined {
    return length < 0 ? undefined : this.take(length);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the checksum proves that this program wrote the values
type Known = any;

/** Parses a change; undefined for a kind that this version does not know. The bytes are slices of the content. */
export function parseChange(content: Buffer): Change | undefined {
  const end = 4 + content.readUInt32LE(0);
  const [kind, ...fields]: Known[] = JSON.parse(content.toString('utf8', 4, end));
  const bytes = new Bytes(content, end);
  switch (kind) {
    case 'append': {
      const [key, epoch, events] = fields;
      return { kind, key, epoch, events: events.map((json: Known) => eventFromJson(json, bytes)) };
    }
    case 'session':
      return { kind, key: fields[0], session: sessionFromJson(fields[1], bytes) };
    case 'amend': {
      const clientState = bytes.takeIfPresent(fields[1]);
      const clientSaid = bytes.takeIfPresent(fields[2]);
      return {
        kind,
        key: fields[0],
        changes: { ...(clientState && { clientState }), ...(clientSaid && { clientSaid }) },
      };
    }
    case 'owner': {
      const [key, owner, epoch, takeovers, term] = fields;
      return { kind, key, owner, epoch, takeovers: takeoversFromJson(takeovers), term: term ?? undefined };
    }
    case 'end': {
      const [key, expiresAtMs, epoch, wornOutFrom] = fields;
      const tombstone = {
        expiresAtMs: expiresAtMs ?? Number.POSITIVE_INFINITY,
        epoch,
        wornOutFrom: wornOutFrom ?? undefined,
      };
      return { kind, key, tombstone };
    }
    case 'value': {
      const [of, name, ttlMs, length] = fields;
      return { kind, of, name, ttlMs, value: bytes.take(length) };
    }
    default:
      return undefined;
  }
}

function sessionFromJson(json: Known, bytes: Bytes): StoredSession {
  const record = Object.fromEntries(
    Object.entries<Known>(json.record).map(([name, value]) => [
      name,
      value.bytes === undefined ? value : bytes.take(value.bytes),
    ]),
  ) as unknown as SessionRecord;
  const [logEpoch, tailSeq, newestStream] = json.log;
  const tails = new Map<number, StreamTail>(
    json.tails.map(([stream, epoch, seq, ended]: Known[]) => [stream, { newest: { epoch, seq }, ended }]),
  );
  const pending = json.pending.map((call: Known) => callFromJson(call, bytes));
  const state: LogState = { tails, newestStream, pending };
  const entries: LogEntry[] = json.entries.map(([epoch, ...rest]: Known[]) => {
    const storedAtMs = rest.pop();
    const { stream, seq, previous, data, last } = eventFromJson(rest, bytes);
    return { event: { epoch, stream, seq, previous, data, last }, storedAtMs };
  });
  const log: LogContents = { epoch: logEpoch, tailSeq, state, entries };
  return {
    record,
    expiresAtMs: json.expiresAtMs ?? Number.POSITIVE_INFINITY,
    takeovers: takeoversFromJson(json.takeovers),
    ...(json.term !== null && { term: json.term }),
    log,
  };
}

function eventFromJson(json: Known, bytes: Bytes): NewEvent {
  const [stream, seq, previousEpoch, previousSeq, last, length, settles, opens] = json;
  const previous = previousEpoch === null ? undefined : { epoch: previousEpoch, seq: previousSeq };
  const event = { stream, seq, previous, data: bytes.take(length), last };
  if (opens === undefined) return event;
  const calls = opens.map((call: Known) => callFromJson(call, bytes));
  return { ...event, ...(settles !== null && { settles }), ...(calls.length > 0 && { opens: calls }) };
}

function callFromJson([stream, id, method, name, length, client]: Known, bytes: Bytes): PendingCall {
  const text = bytes.takeIfPresent(length);
  return { stream, id, method, ...(name !== null && { name }), text, ...(client !== undefined && { client }) };
}

const takeoversFromJson = ([count, lastMs]: Known): StoredSession['takeovers'] => ({
  count,
  lastMs: lastMs ?? Number.NEGATIVE_INFINITY,
});
