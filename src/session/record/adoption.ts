import { mayRequestInput } from '../../call/rerun.ts';
import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { type Message, readBody } from '../../protocol/message/message.ts';
import { readProgressValue } from '../../protocol/message/progress-value.ts';
import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { EventLog, PendingCall } from '../../store/event-log.ts';
import type { LogState, SessionRecord } from '../../store/session-records.ts';
import { eventsPerRead } from '../events/cursor.ts';
import { getStream } from '../events/streams.ts';
import { readBackendCheckpoint } from './client-state.ts';

/** A call that an earlier owner left unanswered, and how far it had come. */
export interface PendingCallState extends PendingCall {
  /** What the server knows the call by beside its id. */
  readonly progressToken: RequestId | undefined;
  readonly taskId: string | undefined;
  /** The server had asked the client something on the call's stream, and on behalf of the call for all that is known. */
  readonly hasAsked: boolean;
  /** The newest progress that was reported there. */
  readonly lastProgress: number | undefined;
}

/** A question of a lost server that nothing in the log takes back. */
export interface PendingServerRequest {
  readonly stream: number;
  readonly id: RequestId;
}

/** What a new owner goes on from. */
export interface Adoption {
  readonly record: SessionRecord;
  readonly log: LogState;
  readonly calls: readonly PendingCallState[];
  readonly questions: readonly PendingServerRequest[];
  /** What the log had of the server after its backend had told where it stands (`BackendPlace.at`). */
  readonly taken: readonly Buffer[];
  /** What the request that caused the takeover brings for the server: of earlier ones nothing is kept. */
  readonly forwarded?: ForwardedHeaders | undefined;
}

/** Reads from the log what the record of a session that was taken over does not say. */
export async function prepareAdoption(
  events: EventLog,
  key: string,
  record: SessionRecord,
  log: LogState,
): Promise<Adoption> {
  const at = readBackendCheckpoint(record.clientState)?.at;
  const streams = [...new Set([getStream, ...log.pending.map(({ stream }) => stream)])];
  const seen = new Map(
    await Promise.all(streams.map(async (stream) => [stream, await look(events, key, stream, at)] as const)),
  );
  const calls = log.pending.map((call) => {
    const onStream = seen.get(call.stream);
    const { progressToken, taskId } = (call.text && readOneMessage(call.text)) ?? nothingKnown;
    return {
      ...call,
      ...{ progressToken, taskId },
      hasAsked: (onStream?.hasAsked ?? false) && (call.stream !== getStream || mayRequestInput(call.method)),
      lastProgress: progressToken === undefined ? undefined : onStream?.progress.get(progressToken),
    };
  });
  const questions = streams.flatMap((stream) => [...(seen.get(stream)?.open ?? [])].map((id) => ({ stream, id })));
  const taken = [...seen.values()].flatMap((stream) => stream.taken);
  return { record, log, calls, questions, taken };
}

interface Seen {
  readonly open: ReadonlySet<RequestId>;
  readonly hasAsked: boolean;
  /** The newest progress by its token: on the GET stream several calls can report. */
  readonly progress: ReadonlyMap<RequestId, number>;
  readonly taken: readonly Buffer[];
}

const nothingKnown = { progressToken: undefined, taskId: undefined };

/** The message in a line of a server, or in a text of the log, if it is one. */
export function readOneMessage(text: Buffer): Message | undefined {
  const body = readBody(text, Number.POSITIVE_INFINITY);
  const [first] = body.ok ? body.messages : [];
  return first?.ok ? first.message : undefined;
}

/** @param at what comes after it is `taken`; nothing if it is undefined */
async function look(events: EventLog, key: string, stream: number, at: LogPosition | undefined): Promise<Seen> {
  const taken: Buffer[] = [];
  const open = new Set<RequestId>();
  let hasAsked = false;
  const newestProgress = new Map<RequestId, number>();
  let after: LogPosition | undefined;
  for (;;) {
    const read = await events.read(key, stream, after, eventsPerRead);
    if (read.outcome !== 'ok') break;
    for (const { data, epoch, seq } of read.events) {
      if (data.length === 0) continue;
      if (at !== undefined && (epoch > at.epoch || (epoch === at.epoch && seq > at.seq))) taken.push(data);
      const message = readOneMessage(data);
      if (message === undefined) continue;
      const { kind, id, cancels, progressToken } = message;
      if (kind === 'request' && id != null) {
        open.add(id);
        hasAsked = true;
      } else if (cancels !== undefined) open.delete(cancels);
      else if (progressToken !== undefined) {
        const progress = readProgressValue(data);
        if (!Number.isNaN(progress)) newestProgress.set(progressToken, progress);
      }
    }
    after = read.events.at(-1);
    if (read.atTail || after === undefined) break;
  }
  return { open, hasAsked, progress: newestProgress, taken };
}
