import type { RequestId } from '../../../core/protocol/faults.ts';
import type { ForwardedHeaders } from '../../../core/protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../../core/protocol/ids/own-ids.ts';
import { errorCodeIn, scalarAt } from '../../../core/protocol/json.ts';
import { modernErrors } from '../../../core/protocol/known-revisions.ts';
import { createMessage, type Message } from '../../../core/protocol/message/message.ts';
import { methodNotFound } from '../../../core/protocol/revisions.ts';
import { timeLimitSignal } from '../../../core/util/timing/time-limit.ts';
import { type HttpConnection, postHeaders } from './http-connection.ts';
import { readStart } from './json-body.ts';

/** Options of the probe. */
export interface SessionProbeOptions {
  readonly url: URL;
  readonly connection: HttpConnection;
  /** The headers that name the session. */
  readonly session: { readonly headers: Readonly<Record<string, string>> };
  clientHeaders(): ForwardedHeaders;
}

/** After the server has forgotten the session: how long the other open POSTs may take to get the same answer. */
export const forgottenGraceMs = 500;

/**
 * How often the loss of a session may be the reason to send one message again. A server that refuses the same message in
 * each new session means the message.
 */
const maxRepeats = 2;
const repeats = new WeakMap<Message, number>();

/** True if a message may be sent again because the server has forgotten the session. Counts the times. */
export function mayBeRepeated(message: Message): boolean {
  const count = repeats.get(message) ?? 0;
  repeats.set(message, count + 1);
  return count < maxRepeats;
}

/** How long the server may take to show whether it knows the session. */
const timeoutMs = 5_000;

/** Only the start of the answer is read. */
const maxAnswerBytes = 16 * 1024;

/** How servers call a session that they do not know, or that has not begun. */
const lostSession = /session|initiali[sz]/i;

/** Longer texts are not searched. */
const maxSearched = 1_000;

/** True for an error that may mean that the server has forgotten the session. `isSessionKnown` tells. */
export function mayMeanForgotten({ isError, text }: Message): boolean {
  if (!isError) return false;
  const said = scalarAt(text, ['error', 'message']);
  return typeof said === 'string' && lostSession.test(said.slice(0, maxSearched));
}

/** Statuses that speak of the rights of the client, its rate or its method. They say nothing of the session. */
const unrelatedStatuses: ReadonlySet<number> = new Set([401, 403, 405, 407, 408, 425, 429]);

/** True for a status with which servers refuse a request in an unknown session, instead of the 404 of the specification. */
export const isForgottenStatus = (status: number): boolean =>
  status >= 400 && status < 500 && !unrelatedStatuses.has(status);

/**
 * Asks a server that refused a message or a stream, or answered in an odd way, whether it knows the session. For an
 * unknown session, as after a restart, many servers answer 400 where the specification has 404, or 200 with an error.
 * False only if the server refuses a ping in the same way. Never rejects.
 * @param id of the ping, whose answer may come on another stream
 */
export async function isSessionKnown(
  { connection, url, session, clientHeaders }: SessionProbeOptions,
  id: RequestId = nextOwnId(),
): Promise<boolean> {
  const headers = { ...clientHeaders(), ...postHeaders, ...session.headers };
  const signal = timeLimitSignal(timeoutMs);
  const body = createMessage({ id, method: 'ping' }).text;
  try {
    const { status, body: answered } = await connection.request({ method: 'POST', url, headers, body, signal });
    const answer = await readStart(answered, { maxBytes: maxAnswerBytes, limitMs: timeoutMs, isEnough: isResult });
    if (unrelatedStatuses.has(status) || isResult(answer) || answer.includes(String(methodNotFound))) return true;
    return !isForgottenStatus(status) && !lostSession.test(answer.slice(0, maxSearched));
  } catch {
    return true; // no answer: the session counts as known
  }
}

const isResult = (answer: string): boolean => /"result"\s*:/.test(answer);

/** True for the error of a server that lacks the method, which is no refusal of the session. */
export const isMethodMissing = ({ isError, text }: Message): boolean => isError && errorCodeIn(text) === methodNotFound;

/** True for the error of a server that no longer knows `initialize`. */
export const isModernError = ({ isError, text }: Message): boolean => isError && modernErrors.has(errorCodeIn(text));
