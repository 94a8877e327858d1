import type { Listened } from './resuming-client.ts';
import type { SseEvent } from './sse-reader.ts';

/** The known content of a stream. */
export interface Expected {
  /** The texts of its messages in order. The last one of a POST stream is the response. */
  readonly texts: readonly string[];
  /** True if the session's revision has priming events. */
  readonly primes: boolean;
  /** True if every message must have reached the client. Otherwise the received messages must be a prefix. */
  readonly isWhole: boolean;
}

interface Place {
  readonly stream: number;
  readonly epoch: number;
  readonly seq: number;
}

function placeOf(id: string): Place | undefined {
  const [, stream, epoch, seq] = /^(\d+)\.(\d+)-(\d+)(?:~[!-~]+)?$/.exec(id) ?? [];
  return seq === undefined ? undefined : { stream: Number(stream), epoch: Number(epoch), seq: Number(seq) };
}

const isBefore = (a: Place, b: Place): boolean => a.epoch < b.epoch || (a.epoch === b.epoch && a.seq < b.seq);

/**
 * Finds violations in the connections of one client to one stream (P4). A connection must deliver what the server sent
 * directly after the event from which it was resumed. So there is no gap, no duplicate and no wrong order, and two
 * resumes from one id deliver the same. An id belongs to one event, ids belong to one stream and ascend. An answer has
 * exactly one response, which is its last event.
 */
export function faultsOfTranscript(
  transcript: readonly Listened[],
  { texts, primes, isWhole }: Expected,
): readonly string[] {
  const faults: string[] = [];
  /** The number of messages that a client with this last event id has. */
  const countAt = new Map<string, number>();
  /** The ids of the messages, by message number. */
  const idOf: string[] = [];
  let most = 0;

  const checkId = (where: string, id: string, index: number): void => {
    const [place, first] = [placeOf(id), placeOf(idOf[0] ?? id)];
    if (place === undefined) faults.push(`${where}: the id ${id} is malformed`);
    else if (place.stream !== first?.stream) faults.push(`${where}: the id ${id} is of another stream`);
    const known = idOf[index];
    if (known !== undefined && known !== id) faults.push(`${where}: message ${index} has the ids ${known} and ${id}`);
    const other = countAt.get(id);
    if (known === undefined && other !== undefined) faults.push(`${where}: the id ${id} stands for two events`);
    const before = index === 0 ? undefined : placeOf(idOf[index - 1] ?? '');
    if (before !== undefined && place !== undefined && !isBefore(before, place)) {
      faults.push(`${where}: the id ${id} does not come after ${idOf[index - 1]}`);
    }
    idOf[index] = id;
    countAt.set(id, index + 1);
  };

  for (const [number, { method, after, status, events }] of transcript.entries()) {
    if (status === 0) continue;
    if (status !== 200 && status !== 204) faults.push(`connection ${number}: status ${status}`);
    const start = after === undefined ? 0 : countAt.get(after);
    if (start === undefined) {
      faults.push(`connection ${number}: resumed from ${after}, which was never sent`);
      continue;
    }
    if (status === 204 && start < texts.length) faults.push(`connection ${number}: 204 after ${start} messages`);
    let at = start;
    for (const [index, { id, data, event }] of events.entries()) {
      const where = `connection ${number}, event ${index}`;
      if (data === undefined || data === '') {
        const isInPlace = index === 0 && primes && (method === 'POST' || after === undefined || id === after);
        if (!isInPlace) faults.push(`${where}: a priming event ${id} that does not belong here`);
        if (id !== undefined && !countAt.has(id)) countAt.set(id, at);
        continue;
      }
      if (index === 0 && primes) faults.push(`${where}: comes without a priming event before it`);
      if (event !== 'message') faults.push(`${where}: an event of type ${event}: ${data}`);
      if (data !== texts[at]) faults.push(`${where}: ${describe(data, texts, at)}`);
      if (id === undefined) faults.push(`${where}: has no id`);
      else checkId(where, id, at);
      at += 1;
    }
    most = Math.max(most, at);
  }
  if (isWhole && most !== texts.length) faults.push(`${most} of ${texts.length} messages came`);
  return faults;
}

function describe(data: string, texts: readonly string[], at: number): string {
  const found = texts.indexOf(data);
  const what = found === -1 ? data.slice(0, 100) : found < at ? `message ${found} again` : `message ${found}`;
  return `${what} instead of ${at < texts.length ? `message ${at}` : 'the end'}`;
}

/** The message ids that two streams of one session share. There must be none (R7.13). */
export function sharedIds(transcripts: readonly (readonly Listened[])[]): string[] {
  const owner = new Map<string, number>();
  const shared = new Set<string>();
  for (const [number, transcript] of transcripts.entries()) {
    for (const { id } of transcript.flatMap(({ events }) => events) as readonly SseEvent[]) {
      if (id === undefined) continue;
      if ((owner.get(id) ?? number) !== number) shared.add(id);
      owner.set(id, number);
    }
  }
  return [...shared];
}
