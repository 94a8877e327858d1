import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { changePrefix, decodeChange } from '../../../src/features/files/stored-changes.ts';
import { type LogEntry, logNameOf, type SessionLog } from '../../support/session-logs.ts';

/**
 * The logs of all sessions in a directory, as the files have them: the events of a session when it was stored whole, and
 * those that were appended later.
 */
export async function readFileLogs(directory: string): Promise<ReadonlyMap<string, SessionLog>> {
  const entries = new Map<string, LogEntry[]>();
  const generations = new Map<string, number | undefined>();
  const database = new ClassicLevel<string, Buffer>(join(directory, 'db'), { valueEncoding: 'buffer' });
  for await (const [stored, value] of database.iterator({ gte: changePrefix, lt: `${changePrefix}\uffff` })) {
    const timed = decodeChange(stored, value);
    const change = timed?.change;
    if (change?.kind === 'append' && timed?.generation === generations.get(change.key)) {
      const { key, epoch, events } = change;
      const known = entries.get(key) ?? [];
      entries.set(key, known);
      for (const { stream, seq, previous, data, last } of events)
        known.push({ epoch, seq, stream, previous, data: data.toString(), last });
    } else if (change?.kind === 'session') {
      generations.set(change.key, timed?.generation);
      const kept = [...change.session.log.entries];
      entries.set(
        change.key,
        kept.map(({ event: { data, ...event } }) => ({ ...event, data: data.toString() })),
      );
    }
  }
  await database.close();
  return new Map(
    [...entries].map(([key, list]) => [createHash('sha256').update(key).digest('base64url'), { entries: list }]),
  );
}

export { logNameOf };
