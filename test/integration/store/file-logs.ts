import { createHash } from 'node:crypto';
import { readSegment } from '../../../src/store/memory/journal/files/read-segment.ts';
import { listSegments } from '../../../src/store/memory/journal/files/segment-files.ts';
import { parseChange } from '../../../src/store/memory/journal/parse-change.ts';
import { type LogEntry, logNameOf, type SessionLog } from '../../support/session-logs.ts';

/**
 * The logs of all sessions in a directory, as the files have them: every event that was ever appended, in the order of
 * the files. Files that were written anew have the kept events of a session in one place.
 */
export async function readFileLogs(directory: string): Promise<ReadonlyMap<string, SessionLog>> {
  const entries = new Map<string, LogEntry[]>();
  for (const { path } of listSegments(directory)) {
    readSegment(path, ({ content }) => {
      const change = parseChange(content);
      if (change?.kind === 'append') {
        const { key, epoch, events } = change;
        const known = entries.get(key) ?? [];
        entries.set(key, known);
        for (const { stream, seq, previous, data, last } of events)
          known.push({ epoch, seq, stream, previous, data: data.toString(), last });
      } else if (change?.kind === 'session') {
        const kept = [...change.session.log.entries];
        entries.set(
          change.key,
          kept.map(({ event: { data, ...event } }) => ({ ...event, data: data.toString() })),
        );
      }
    });
  }
  return new Map(
    [...entries].map(([key, list]) => [createHash('sha256').update(key).digest('base64url'), { entries: list }]),
  );
}

export { logNameOf };
