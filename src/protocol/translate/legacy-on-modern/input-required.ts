import { readScalar } from '../../json/scalar.ts';
import { scanObject } from '../../json/scan.ts';
import { findRange, scalarAt, valueAt } from '../../json/splice.ts';
import { putMembers, withoutMember } from '../../message/edit-members.ts';
import type { Message } from '../../message/message.ts';

/**
 * What a modern server asks of its client in the middle of a request (2026-07-28, basic/patterns/mrtr), for a client of the
 * legacy era, which is asked by requests of the server.
 */

/** One question, as the server wrote it. */
export interface InputQuestion {
  readonly key: string;
  readonly method: string;
  /** JSON text; undefined if it has none. */
  readonly params: Buffer | undefined;
}

/** What an `input_required` result asks for. */
export interface InputRequired {
  readonly questions: readonly InputQuestion[];
  /** JSON text, which goes back byte for byte; undefined if there is none. */
  readonly stateText: Buffer | undefined;
}

/** A server with more questions at once than this breaks off its request (P8). */
const maxQuestions = 100;

/** What a client can be asked. */
const askable: ReadonlySet<unknown> = new Set(['elicitation/create', 'sampling/createMessage', 'roots/list']);

/**
 * The type of a result ("Result Responses" of 2026-07-28, basic): an absent one counts as complete. Undefined for one that
 * is no text, and for an error.
 */
export function resultTypeOf({ text }: Message): string | undefined {
  const place = findRange(text, ['result', 'resultType']);
  if (typeof place !== 'object') return typeof findRange(text, ['result']) === 'object' ? 'complete' : undefined;
  const type = readScalar(text, place);
  return typeof type === 'string' ? type : undefined;
}

/** Reads an `input_required` result; undefined if it breaks the rules for them, or asks for too much at once. */
export function readInputRequired({ text }: Message): InputRequired | undefined {
  const state = valueAt(text, ['result', 'requestState']);
  if (state !== undefined && state[0] !== 0x22) return undefined;
  const asked = valueAt(text, ['result', 'inputRequests']);
  if (asked === undefined) return state && { questions: [], stateText: state };
  const members = scanObject(asked);
  if (members === undefined || members === 'duplicate_key' || members.keys.length > maxQuestions) return undefined;
  const questions: InputQuestion[] = [];
  for (const [index, key] of members.keys.entries()) {
    const value = asked.subarray(members.starts[index], members.ends[index]);
    const method = scalarAt(value, ['method']);
    if (!askable.has(method)) return undefined;
    questions.push({ key, method: method as string, params: valueAt(value, ['params']) });
  }
  return questions.length === 0 && state === undefined ? undefined : { questions, stateText: state };
}

/**
 * A question as a request to a legacy client. One that is to be answered at a URL has an id of its own there (2025-11-25,
 * client/elicitation), which the modern era gave up: it is that of the request.
 */
export function toLegacyRequest({ method, params }: InputQuestion, id: string): Buffer {
  const idText = JSON.stringify(id);
  const name = JSON.stringify(method);
  if (params === undefined) return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"method":${name}}`);
  const isAtUrl = valueAt(params, ['mode'])?.toString() === '"url"';
  const rest = isAtUrl ? withoutMember(params, ['elicitationId']).toString() : params.toString();
  const own = isAtUrl ? `{"elicitationId":${idText},${rest.slice(1)}` : rest;
  return Buffer.from(`{"jsonrpc":"2.0","id":${idText},"method":${name},"params":${own}}`);
}

/**
 * The request once more, with the answers to the questions under their keys, and the state.
 * @param answers results of the client by key, as JSON text
 */
export function toRetryRequest(
  request: Message,
  answers: ReadonlyMap<string, string>,
  stateText: Buffer | undefined,
): Buffer {
  const responses = [...answers].map(([key, text]) => `${JSON.stringify(key)}:${text}`);
  return putMembers(request, 'params', [
    ...(answers.size === 0 ? [] : ([['inputResponses', `{${responses.join()}}`]] as const)),
    ...(stateText === undefined ? [] : ([['requestState', stateText.toString()]] as const)),
  ]);
}
