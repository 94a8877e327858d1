import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { parseOwn } from '../../protocol/json.ts';
import { type Message, readOne } from '../../protocol/message/message.ts';
import { readProgressValue } from '../../protocol/message/progress-value.ts';
import { methodOf } from '../../protocol/methods/methods.ts';
import type { RenumberedIds } from '../../protocol/modern/renumber.ts';
import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { EventLog, PendingCall } from '../../store/event-log.ts';
import { getStream } from '../../store/event-log.ts';
import { readPages } from '../../store/read-pages.ts';
import type { LogState, SessionRecord } from '../../store/session-records.ts';
import { readBackendCheckpoint } from './client-state.ts';

/** A call that an earlier owner left unanswered, and its progress. */
export interface PendingCallState extends PendingCall {
  /** The request as it was sent; undefined if it was not kept. */
  readonly request: Message | undefined;
  readonly renumbered: RenumberedIds | undefined;
  /** The server's other names for the call, beside its id. */
  readonly progressToken: RequestId | undefined;
  readonly taskId: string | undefined;
  /** True if the server sent a request on the call's stream. We must assume that this call caused it. */
  readonly hasAsked: boolean;
  /** The newest progress that was reported for the call. */
  readonly lastProgress: number | undefined;
}

/** The client's ids of a pending call that was renumbered; undefined for any other. */
export function renumberedIn({ client }: Pick<PendingCall, 'client'>): RenumberedIds | undefined {
  if (client === undefined) return undefined;
  const [idText, token] = client;
  const tokenText = token ?? undefined;
  const clientToken = tokenText === undefined ? undefined : (parseOwn(tokenText) as RequestId);
  return { clientId: parseOwn(idText) as RequestId, idText, clientToken, tokenText };
}

/** The id under which the client knows a pending call. */
export const clientIdIn = (call: PendingCall): RequestId => renumberedIn(call)?.clientId ?? call.id;

/** The state that a new owner starts from. */
export interface Adoption {
  readonly record: SessionRecord;
  readonly log: LogState;
  readonly calls: readonly PendingCallState[];
  /** The requests of the lost server that nothing in the log cancels. */
  readonly serverRequests: readonly { readonly stream: number; readonly id: RequestId }[];
  /** Server messages in the log that came after the backend's checkpoint (`BackendCheckpoint.at`). */
  readonly afterCheckpoint: readonly Message[];
  /** The forwarded headers of the request that caused the takeover. Those of earlier requests are not kept. */
  readonly forwarded?: ForwardedHeaders | undefined;
  /** The instance that was lost with the session; undefined if the owner has left the session. */
  readonly lostInstance?: string | undefined;
}

/** Reads from the log the state of a session that its record does not have. */
export async function prepareAdoption(
  events: EventLog,
  key: string,
  record: SessionRecord,
  log: LogState,
): Promise<Adoption> {
  const at = readBackendCheckpoint(record.clientState)?.at;
  const streams = [...new Set([getStream, ...log.pending.map(({ stream }) => stream)])];
  const findings = new Map(
    await Promise.all(streams.map(async (stream) => [stream, await readStream(events, key, stream, at)] as const)),
  );
  const calls = log.pending.map((call) => {
    const onStream = findings.get(call.stream);
    const request = call.text && readOne(call.text);
    const renumbered = renumberedIn(call);
    const ownToken = renumbered?.tokenText === undefined ? undefined : call.id;
    const { taskId, progressToken = ownToken } = request ?? noNames;
    // The log has what the client got, under the client's token.
    const token = renumbered === undefined ? progressToken : renumbered.clientToken;
    return {
      ...call,
      request,
      progressToken,
      taskId,
      renumbered,
      hasAsked: (onStream?.hasAsked ?? false) && (call.stream !== getStream || methodOf(call.method).mayAsk),
      lastProgress: token === undefined ? undefined : onStream?.progress.get(token),
    };
  });
  const serverRequests = streams.flatMap((stream) =>
    [...(findings.get(stream)?.openRequests ?? [])].map((id) => ({ stream, id })),
  );
  const afterCheckpoint = [...findings.values()].flatMap((stream) => stream.afterCheckpoint);
  return { record, log, calls, serverRequests, afterCheckpoint };
}

interface StreamFindings {
  readonly openRequests: ReadonlySet<RequestId>;
  readonly hasAsked: boolean;
  /** The newest progress by its token: several calls can report on the GET stream. */
  readonly progress: ReadonlyMap<RequestId, number>;
  readonly afterCheckpoint: readonly Message[];
}

const noNames = { progressToken: undefined, taskId: undefined };

/** @param at later messages are collected in `afterCheckpoint`; none if it is undefined */
async function readStream(
  events: EventLog,
  key: string,
  stream: number,
  at: LogPosition | undefined,
): Promise<StreamFindings> {
  const afterCheckpoint: Message[] = [];
  const openRequests = new Set<RequestId>();
  let hasAsked = false;
  const newestProgress = new Map<RequestId, number>();
  for await (const page of readPages(events, key, stream, undefined)) {
    for (const { data, epoch, seq } of page.outcome === 'ok' ? page.events : []) {
      if (data.length === 0) continue;
      const message = readOne(data);
      if (message === undefined) continue;
      if (at !== undefined && (epoch > at.epoch || (epoch === at.epoch && seq > at.seq))) afterCheckpoint.push(message);
      const { kind, id, cancels, progressToken } = message;
      if (kind === 'request' && id != null) {
        openRequests.add(id);
        hasAsked = true;
      } else if (cancels !== undefined) openRequests.delete(cancels);
      else if (progressToken !== undefined) {
        const progress = readProgressValue(data);
        if (!Number.isNaN(progress)) newestProgress.set(progressToken, progress);
      }
    }
  }
  return { openRequests, hasAsked, progress: newestProgress, afterCheckpoint };
}
