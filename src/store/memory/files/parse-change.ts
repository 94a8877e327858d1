import type { NewEvent, PendingCall } from '../../event-log.ts';
import type { LogState, SessionRecord, StreamTail } from '../../session-records.ts';
import type { LogContents, LogEntry } from '../memory-log.ts';
import type { StoredSession } from '../memory-tables.ts';
import type { Change } from './change.ts';

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
