import type { Answer } from './http-client.ts';
import { answers } from './sdk-clients.ts';

/** A request of a server that a modern client receives during its own request. */
export interface InputRequest {
  readonly method: string;
  readonly params?: Record<string, unknown>;
}

/** The answers of the SDK clients in the tests, for a client without an SDK. */
export function modernAnswers({ method }: InputRequest): object {
  if (method === 'roots/list') return { roots: answers.roots };
  if (method === 'elicitation/create') return { action: 'accept', content: { ...answers.elicited, name: 'ada' } };
  return { role: 'assistant', content: { type: 'text', text: answers.sample }, model: 'test-model' };
}

/** The members of `params` that make a request a retry with these answers. */
export function retryWith({ json }: Answer, answer: (request: InputRequest) => object): Record<string, unknown> {
  const { inputRequests, requestState } = json.result;
  const asked = Object.entries(inputRequests as Record<string, InputRequest>);
  return { inputResponses: Object.fromEntries(asked.map(([key, request]) => [key, answer(request)])), requestState };
}
