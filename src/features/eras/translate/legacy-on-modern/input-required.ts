import type { RequestId } from '../../../../core/protocol/faults.ts';
import { readScalar, scalarAt, scanMember, scanObject, valueAt } from '../../../../core/protocol/json.ts';
import { changedMessage } from '../../../../core/protocol/message/changed-message.ts';
import { putMembers, withoutMember } from '../../../../core/protocol/message/edit-members.ts';
import { type Message, memberRange, readGatewayMessage } from '../../../../core/protocol/message/message.ts';
import { isQuestion } from '../../../../core/protocol/methods/methods.ts';

/**
 * Translates the questions of a modern server in the middle of a request (2026-07-28, basic/patterns/mrtr) for a legacy
 * client, which gets them as requests.
 */

/** One question, as the server wrote it. */
export interface InputQuestion {
  readonly key: string;
  readonly method: string;
  /** JSON text; undefined if there are no params. */
  readonly params: Buffer | undefined;
}

/** The contents of an `input_required` result. */
export interface InputRequired {
  readonly questions: readonly InputQuestion[];
  /** JSON text, which is sent back byte for byte; undefined if there is no state. */
  readonly stateText: Buffer | undefined;
}

/** The request fails if its server sends more questions at once (P8). */
const maxQuestions = 100;

/**
 * The type of a result ("Result Responses" of 2026-07-28, basic); an absent type counts as complete. Undefined for a
 * type that is not a string, and for an error.
 */
export function resultTypeOf(response: Message): string | undefined {
  const range = memberRange(response, 'message', 'result');
  if (range === undefined) return undefined;
  const result = response.text.subarray(range.start, range.end);
  const at = scanMember(result, 'resultType');
  if (typeof at !== 'object') return 'complete';
  const type = readScalar(result, at);
  return typeof type === 'string' ? type : undefined;
}

/** Reads an `input_required` result; undefined if it breaks the rules, or has too many questions at once. */
export function readInputRequired({ text }: Message): InputRequired | undefined {
  const state = valueAt(text, ['result', 'requestState']);
  if (state !== undefined && state[0] !== 0x22) return undefined;
  const requests = valueAt(text, ['result', 'inputRequests']);
  if (requests === undefined) return state && { questions: [], stateText: state };
  const members = scanObject(requests);
  if (members === undefined || members === 'duplicate_key' || members.keys.length > maxQuestions) return undefined;
  const questions: InputQuestion[] = [];
  for (const [index, key] of members.keys.entries()) {
    const value = requests.subarray(members.starts[index], members.ends[index]);
    const method = scalarAt(value, ['method']);
    if (typeof method !== 'string' || !isQuestion(method)) return undefined;
    questions.push({ key, method, params: valueAt(value, ['params']) });
  }
  return questions.length === 0 && state === undefined ? undefined : { questions, stateText: state };
}

/**
 * Writes a question as a request to a legacy client. A question to answer at a URL has an `elicitationId` there
 * (2025-11-25, client/elicitation), which the modern era removed. The id of the request takes its place.
 */
export function toLegacyRequest({ method, params }: InputQuestion, id: RequestId): Message {
  const idText = JSON.stringify(id);
  const name = JSON.stringify(method);
  if (params === undefined) return readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":${idText},"method":${name}}`));
  const isAtUrl = valueAt(params, ['mode'])?.toString() === '"url"';
  const rest = isAtUrl ? withoutMember(params, ['elicitationId']).toString() : params.toString();
  const paramsText = isAtUrl ? `{"elicitationId":${JSON.stringify(`input-${id}`)},${rest.slice(1)}` : rest;
  return readGatewayMessage(Buffer.from(`{"jsonrpc":"2.0","id":${idText},"method":${name},"params":${paramsText}}`));
}

/**
 * Writes the request again, with the answers under the keys of their questions, and with the state.
 * @param answers results of the client by key, as JSON text
 */
export function toRetryRequest(
  request: Message,
  answers: ReadonlyMap<string, string>,
  stateText: Buffer | undefined,
): Message {
  const responses = [...answers].map(([key, text]) => `${JSON.stringify(key)}:${text}`);
  const text = putMembers(request, 'params', [
    ...(answers.size === 0 ? [] : ([['inputResponses', `{${responses.join()}}`]] as const)),
    ...(stateText === undefined ? [] : ([['requestState', stateText.toString()]] as const)),
  ]);
  return changedMessage(request, text, {});
}
