import type { NewEvent, PendingCall, StoredEvent } from '../../event-log.ts';
import type { StoredSession } from '../memory-tables.ts';
import type { Change } from './change.ts';

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
