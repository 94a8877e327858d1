import { errorCodeIn } from '../json.ts';
import type { Message } from '../message/message.ts';
import { methodOf } from '../methods/methods.ts';
import { methodNotFound, type Revision } from '../revisions.ts';

/**
 * Returns the HTTP status for a server's response that is the first message to its client (2026-07-28,
 * basic/transports/streamable-http). Errors without a status of their own, and all other responses, get 200.
 * @param method the method of the request
 * @param declares whether the server has declared a capability
 * @param revision the revision of the request
 */
export function statusOf(
  response: Message,
  method: string,
  declares: (capability: string) => boolean,
  { errorStatuses }: Pick<Revision, 'errorStatuses'>,
): number {
  if (!response.isError) return 200;
  const code = errorCodeIn(response.text) as number;
  // Servers answer a request for one of several things like this if the thing is missing, too. A client that gets 404
  // takes the method for missing, and does not read the error.
  const { capability, nameHeader } = methodOf(method);
  const mayLackThing = code === methodNotFound && nameHeader === 'required' && capability !== undefined;
  return mayLackThing && declares(capability) ? 200 : (errorStatuses.get(code) ?? 200);
}
