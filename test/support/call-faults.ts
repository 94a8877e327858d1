import { deniesReaching, isReason, type RequestId } from '../../src/core/protocol/faults.ts';
import { compareLogPositions, parseEventId } from '../../src/core/protocol/wire/event-id.ts';
import type { Message } from './http-client.ts';
import {
  isResponseMessage,
  marksIn,
  messageOf,
  type RecordedCall,
  type RecordedConnection,
  type SessionTranscript,
} from './transcript.ts';
import { createViolations, type Violation, type Violations } from './violation.ts';

/**
 * The outcome of a call from the client's view. `answered`: the server sent a result or an error. `error`: the gateway
 * sent an error with a reason. `broken`: the connection broke before the call was accepted. `none`: the call was
 * accepted, but no answer came, which is a violation unless the client gave up.
 */
export type CallOutcome =
  | { readonly outcome: 'answered' | 'broken' | 'none' }
  | { readonly outcome: 'error'; readonly reason: string; readonly status: number };

/** A response that a client received. */
interface Answer {
  /** The event id, or the connection of a response that is not an event, so that two responses differ. */
  readonly place: string;
  readonly connection: RecordedConnection;
  readonly message: Message;
}

const keyOf = (id: unknown): string => JSON.stringify(id ?? null);
const reasonOf = (message: Message): string | undefined => message.error?.data?.reason;

/** The outcomes of the calls of a session. */
export function outcomesOf(transcript: SessionTranscript): ReadonlyMap<RequestId, CallOutcome> {
  const answers = answersOf(transcript, createViolations(''));
  return new Map(transcript.calls.map((call) => [call.id, outcomeOf(call, transcript, answers.get(keyOf(call.id)))]));
}

/**
 * Finds violations in the calls of one client (P2, P3). Each accepted call must have exactly one answer, on its own
 * streams. Nothing that the client received may belong to another client.
 * @param executions the marks of the calls that servers began to run, once for each run
 */
export function faultsOfCalls(transcript: SessionTranscript, executions: readonly string[] = []): readonly Violation[] {
  const violations = createViolations(`session ${transcript.name}`);
  const { add } = violations;
  const answers = answersOf(transcript, violations);
  for (const call of transcript.calls) {
    const own = answers.get(keyOf(call.id)) ?? [];
    // The message that an answer is no longer stored does not contradict an answer that the client received earlier.
    const lostAt = own.findIndex(({ message }) => reasonOf(message) === 'history_lost');
    const real = own.filter(({ message }) => reasonOf(message) !== 'history_lost');
    if (lostAt >= 0 && own.slice(lostAt).some((answer) => real.includes(answer)))
      add('two_answers', `${call.id} was answered after its client was told that the answer is lost`);
    const places = [...new Set(real.map(({ place }) => place))];
    if (places.length > 1) add('two_answers', `${call.id} was answered at ${places.join(' and at ')}`);
    const outcome = outcomeOf(call, transcript, own);
    if (outcome.outcome === 'none' && !call.isGivenUp) add('no_answer', `${call.id} was accepted`);

    const runs = executions.filter((mark) => mark === call.mark).length;
    if (call.isOnce && runs > 1) add('run_twice', `${call.id} was run ${runs} times`);
    for (const untrue of runs === 0 ? [] : own.filter((answer) => deniesCall(answer, call)))
      add('untrue_refusal', `${call.id} was run, and its client was told ${reasonOf(untrue.message)}`);
    const { startedAt, endedAt = Number.POSITIVE_INFINITY, deadlineMs = Number.POSITIVE_INFINITY } = call;
    if (endedAt - startedAt > deadlineMs) add('late', `${call.id} had no end within ${deadlineMs} ms`);
  }
  for (const [number, connection] of transcript.connections.entries()) {
    checkOwnership(`connection ${number}`, connection, transcript, violations);
  }
  return violations.found;
}

/** True for an error which says that the call itself, not only a resume, did not reach the server. */
function deniesCall({ connection, message }: Answer, { id }: RecordedCall): boolean {
  const reason = reasonOf(message);
  const isAboutCall = connection.method === 'POST' || keyOf(message.id) === keyOf(id);
  return isAboutCall && (isReason(reason) ? deniesReaching(reason) : connection.status === 503);
}

function outcomeOf(
  call: RecordedCall,
  { connections }: SessionTranscript,
  answers: readonly Answer[] = [],
): CallOutcome {
  const best = answers.find(({ message }) => reasonOf(message) !== 'history_lost') ?? answers[0];
  if (best !== undefined) {
    const reason = reasonOf(best.message);
    return reason === undefined
      ? { outcome: 'answered' }
      : { outcome: 'error', reason, status: best.connection.status };
  }
  const own = connections.filter((connection) => connection.call === call.id);
  const isAccepted = own.some(({ status, isWhole, events }) => {
    return events.some(({ id }) => id !== undefined) || (isWhole && status >= 200 && status < 300);
  });
  return { outcome: isAccepted ? 'none' : 'broken' };
}

/** All responses by request id. */
function answersOf({ connections }: SessionTranscript, { add }: Violations): ReadonlyMap<string, readonly Answer[]> {
  const answers = new Map<string, Answer[]>();
  for (const [number, connection] of connections.entries()) {
    for (const { place, message } of messagesOf(connection, number, add)) {
      if (!isResponseMessage(message)) continue;
      // An error with a null id answers the only request of its POST.
      const isNameless = message.id === null && place.startsWith('connection');
      const key = keyOf(isNameless ? connection.call : message.id);
      answers.set(key, [...(answers.get(key) ?? []), { place, connection, message }]);
    }
  }
  return answers;
}

function messagesOf(
  { events, text, isWhole }: RecordedConnection,
  number: number,
  add: Violations['add'],
): { place: string; message: Message }[] {
  const messages: { place: string; message: Message }[] = [];
  const read = (place: string, data: string | undefined): void => {
    try {
      const message = messageOf({ ...(data !== undefined && { data }) });
      if (message !== undefined) messages.push({ place, message });
    } catch {
      add('malformed', `connection ${number}: what came at ${place} is no JSON: ${data?.slice(0, 100)}`);
    }
  };
  for (const [index, { id, data }] of events.entries()) read(id ?? `connection ${number}, event ${index}`, data);
  // Text that is not a JSON object does not come from a gateway, such as the 502 of a balancer.
  if (isWhole && text.startsWith('{')) read(`connection ${number}`, text);
  return messages;
}

/**
 * True if progress of a call may arrive on this GET stream, because the call had no stream of its own yet (P2). Its
 * first connection was lost before an event id was sent, and no other connection had replaced it.
 */
function isStreamless(
  { id }: RecordedCall,
  place: string,
  connections: readonly RecordedConnection[],
  { call }: RecordedConnection,
): boolean {
  const at = parseEventId(place);
  if (call !== undefined || at === undefined) return false;
  const own = connections.filter((connection) => connection.call === id);
  const ids = own.flatMap(({ events }) => events.map((event) => parseEventId(event.id ?? '')));
  return ids.every((other) => other === undefined || compareLogPositions(at, other) < 0);
}

/** Finds messages that belong to another call, session or client. */
function checkOwnership(
  where: string,
  connection: RecordedConnection,
  { name, calls, connections }: SessionTranscript,
  { add }: Violations,
): void {
  for (const { mark, session } of marksIn([connection.text, ...connection.events.map(({ data }) => data)].join('\n'))) {
    if (session !== name) add('foreign', `${where}: ${mark} is of another session`);
  }
  const callOf = new Map(calls.map((call) => [keyOf(call.id), call]));
  for (const { place, message } of messagesOf(connection, 0, () => undefined)) {
    const isProgress = message.method === 'notifications/progress';
    if (!isProgress && !isResponseMessage(message)) continue;
    if (message.id === null && place.startsWith('connection')) continue;
    const id = isProgress ? message.params?.progressToken : message.id;
    const call = callOf.get(keyOf(id));
    if (call === undefined)
      add('foreign', `${where}: ${place} is about ${keyOf(id)}, which this client never asked for`);
    else if (call.id !== connection.call && !(isProgress && isStreamless(call, place, connections, connection)))
      add('foreign', `${where}: ${place} is about ${keyOf(id)}, another call`);
    const wrong = marksIn(JSON.stringify(message)).find(({ mark }) => call !== undefined && mark !== call.mark);
    if (wrong !== undefined) add('foreign', `${where}: ${place} is about ${keyOf(id)} and has ${wrong.mark}`);
  }
}
