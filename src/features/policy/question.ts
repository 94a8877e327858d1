import type { RequestSender } from '../../core/auth/request-sender.ts';
import type { PolicyPhase } from '../../core/ops/server-events.ts';
import { valueAt } from '../../core/protocol/json.ts';
import { type Message, memberRange, memberValue } from '../../core/protocol/message/message.ts';

/** A request that a policy decides about. */
export interface AskedRequest {
  readonly server: string;
  readonly method: string;
  /** The tool or prompt; undefined for a resource. */
  readonly name: string | undefined;
  readonly uri: string | undefined;
  readonly sender: RequestSender | undefined;
}

/** The text of the arguments of a request; undefined if it has none. */
export function argumentsOf(request: Message): Buffer | undefined {
  const range = memberRange(request, 'params', 'arguments');
  return range && request.text.subarray(range.start, range.end);
}

/** What a policy learns of a request, apart from its arguments. */
export function askedRequest(server: string, request: Message, sender: RequestSender | undefined): AskedRequest {
  const [name, uri] = [memberValue(request, 'params', 'name'), memberValue(request, 'params', 'uri')];
  return {
    server,
    method: request.method ?? '',
    name: typeof name === 'string' ? name : undefined,
    uri: typeof uri === 'string' ? uri : undefined,
    sender,
  };
}

/**
 * The body of a question to a policy service, as Open Policy Agent reads it: the facts are members of `input`. Arguments
 * and results are as they were sent (P1).
 */
export function questionText(phase: PolicyPhase, asked: AskedRequest, content: readonly Content[]): Buffer {
  const { server, method, name, uri, sender } = asked;
  const { principal = {}, scopes, headers = {} } = sender ?? {};
  const facts = JSON.stringify({ phase, server, method, name, uri, principal, scopes, headers });
  const members = content.flatMap(([key, text]) => [Buffer.from(`,${JSON.stringify(key)}:`), text]);
  return Buffer.concat([Buffer.from(`{"input":${facts.slice(0, -1)}`), ...members, Buffer.from('}}')]);
}

/** A member of the question whose value is JSON text of a peer. */
type Content = readonly [key: 'arguments' | 'result' | 'error', text: Buffer];

/** The content of a request, and of its answer. */
export function contentOf(request: Buffer | undefined, answer?: Message): readonly Content[] {
  const own: Content[] = request === undefined ? [] : [['arguments', request]];
  if (answer === undefined) return own;
  const key = answer.isError ? 'error' : 'result';
  const text = valueAt(answer.text, [key]);
  return text === undefined ? own : [...own, [key, text]];
}
