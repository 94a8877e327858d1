import type { NewEvent } from '../../core/store/event-log.ts';
import type { Tombstone } from '../../core/store/memory/memory-sessions.ts';
import type { StoredSession } from '../../core/store/memory/memory-tables.ts';
import type { SessionRecord } from '../../core/store/session-records.ts';
import type { ValueKind } from '../../core/store/shared/shared-data.ts';

/**
 * A change of the tables, as the files keep it. A change is an effect, not a request: whether a request may have its
 * effect was decided before. A change of an unknown session has no effect.
 */
export type Change =
  /** The whole session, in place of what was known under its key. */
  | { readonly kind: 'session'; readonly key: string; readonly session: StoredSession }
  | { readonly kind: 'append'; readonly key: string; readonly epoch: number; readonly events: readonly NewEvent[] }
  | ({ readonly kind: 'record'; readonly key: string } & RecordChange)
  | { readonly kind: 'end'; readonly key: string; readonly tombstone: Tombstone }
  | {
      readonly kind: 'value';
      readonly of: ValueKind;
      readonly name: string;
      readonly value: Buffer;
      readonly ttlMs: number;
    };

/** The members of a record that have new values, and the takeovers that led to its owner. */
export type RecordChange = { readonly record: Partial<SessionRecord> } & Pick<StoredSession, 'takeovers' | 'term'>;

/** Formats a change as the length of its JSON part (u32), the JSON part, and the bytes that JSON cannot carry. */
export function formatChange(change: Change): Buffer[] {
  const bytes: Buffer[] = [];
  const json = Buffer.from(JSON.stringify(toJson(change, bytes)));
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32LE(json.length);
  return [length, json, ...bytes];
}

/**
 * What JSON can carry in place of a value. An object with a single member stands for bytes, of which JSON has the length,
 * for a map, or for an infinite number. No member of a change has such a name.
 */
function toJson(value: unknown, bytes: Buffer[]): unknown {
  if (typeof value === 'number' && Math.abs(value) === Number.POSITIVE_INFINITY) return { infinite: Math.sign(value) };
  if (typeof value !== 'object' || value === null) return value;
  if (Buffer.isBuffer(value)) {
    bytes.push(value);
    return { bytes: value.length };
  }
  if (Array.isArray(value)) return value.map((each) => toJson(each, bytes));
  if (value instanceof Map) return { map: toJson([...value], bytes) };
  const json: Record<string, unknown> = {};
  for (const name of Object.keys(value)) json[name] = toJson((value as Record<string, unknown>)[name], bytes);
  return json;
}

/** Parses a change. Its bytes are slices of the content. The checksum has shown that this program wrote the content. */
export function parseChange(content: Buffer): Change {
  let at = 4 + content.readUInt32LE(0);
  // The order of the bytes is the order of the values, in which JSON.parse visits them, too.
  return JSON.parse(content.toString('utf8', 4, at), (_, value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    if (value.bytes !== undefined) {
      at += value.bytes;
      return content.subarray(at - value.bytes, at);
    }
    if (value.map !== undefined) return new Map(value.map);
    return value.infinite === undefined ? value : value.infinite * Number.POSITIVE_INFINITY;
  });
}
