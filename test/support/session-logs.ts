import { createHash } from 'node:crypto';
import { type LogPosition, parseEventId } from '../../src/core/protocol/wire/event-id.ts';
import type { RedisServer } from './redis-server.ts';

/** One entry of a session's log. */
export interface LogEntry extends LogPosition {
  /** Undefined for the marker that a takeover writes. */
  readonly stream: number | undefined;
  readonly previous: LogPosition | undefined;
  /** The text of the message; empty for a priming event and for a marker. */
  readonly data: string;
  /** True for the event after which its stream ends. */
  readonly last: boolean;
}

/** The log of one session in Redis, in order. */
export interface SessionLog {
  readonly entries: readonly LogEntry[];
}

/** The logs of all sessions that have one now, by what `logNameOf` makes of a session's id. */
export async function readLogs(redis: RedisServer): Promise<ReadonlyMap<string, SessionLog>> {
  const logs = new Map<string, SessionLog>();
  for (const key of (await redis.command('KEYS', '*:session:{*}:log')) as readonly string[]) {
    const [, name = ''] = /:session:\{(.*)\}:log$/.exec(key) ?? [];
    const entries = (await redis.command('XRANGE', key, '-', '+')) as readonly (readonly [string, readonly string[]])[];
    logs.set(name, { entries: entries.flatMap(([id, fields]) => decodeEntry(id, fields)) });
  }
  return logs;
}

/** The name of a session in the keys of Redis. The store's key is a hash of the id, and the name a hash of that key. */
export const logNameOf = (sessionId: string): string => digestOf(digestOf(sessionId));

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url');

/**
 * The events of an entry, as `append` writes it: `h` is `<time> <events> <bytes> <stream>:<events>:<1 if it ends>…`,
 * `d` for each event a line `<stream> <1 if last> <bytes> <previous place or nothing>`, or `<bytes>` if it goes on
 * where the event before it ended, and its data, and the entry's id is the place of the last one. A marker, as
 * `takeOver` writes it, has `m` alone. The one place here that knows this form; on purpose not the decoder that is
 * tested.
 */
export function decodeEntry(id: string, fields: readonly string[]): readonly LogEntry[] {
  const fieldOf = (name: string): string | undefined => {
    const at = fields.findIndex((field, index) => index % 2 === 0 && field === name);
    return at === -1 ? undefined : fields[at + 1];
  };
  const { epoch, seq: lastSeq } = placeOf(id);
  const head = fieldOf('h');
  if (head === undefined) {
    if (fieldOf('m') === undefined) throw new Error(`The entry ${id} is neither events nor a marker: ${fields}`);
    return [{ epoch, seq: lastSeq, stream: undefined, previous: undefined, data: '', last: false }];
  }
  const count = Number(head.split(' ')[1]);
  let rest = Buffer.from(fieldOf('d') ?? '');
  const entries: LogEntry[] = [];
  for (let seq = lastSeq - count + 1; seq <= lastSeq; seq += 1) {
    const end = rest.indexOf('\n');
    const line = rest.toString('latin1', 0, end);
    const full = line.includes(' ') ? line : `${entries.at(-1)?.stream} 0 ${line} ${epoch}-${seq - 1}`;
    const [stream, last, length, previous] = full.split(' ');
    const data = rest.toString('utf8', end + 1, end + 1 + Number(length));
    rest = rest.subarray(end + 1 + Number(length));
    entries.push({
      epoch,
      seq,
      stream: Number(stream),
      previous: previous ? placeOf(previous) : undefined,
      data,
      last: last === '1',
    });
  }
  return entries;
}

/** Reads `<epoch>-<seq>`. */
function placeOf(text: string): LogPosition {
  const id = parseEventId(`0.${text}`);
  if (id === undefined) throw new Error(`Not a place in a log: ${text}`);
  return { epoch: id.epoch, seq: id.seq };
}
