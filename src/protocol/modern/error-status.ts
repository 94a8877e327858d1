import { errorCodeIn } from '../json/splice.ts';
import type { Message } from '../message/message.ts';

/**
 * Returns the HTTP status for a server's response that is the first message to its client (2026-07-28,
 * basic/transports/streamable-http). Only the errors of this table have a status of their own; every other response
 * gets 200.
 * @param method the method of the request
 * @param declares whether the server has declared a capability
 */
export function statusOf(response: Message, method: string, declares: (capability: string) => boolean): number {
  if (!response.isError) return 200;
  const code = errorCodeIn(response.text);
  if (code === methodNotFound) {
    const capability = capabilities.get(method);
    return capability !== undefined && declares(capability) ? 200 : 404;
  }
  return statuses.get(code) ?? 200;
}

const methodNotFound = -32601;

/**
 * Methods that refer to one of several things by name, and their capability. Servers answer -32601 for a missing thing,
 * too. A client that gets 404 takes the method for missing, and does not read the error.
 */
const capabilities: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'tools'],
  ['prompts/get', 'prompts'],
  ['resources/read', 'resources'],
]);

const statuses: ReadonlyMap<unknown, number> = new Map([
  [-32020, 400], // HeaderMismatch
  [-32021, 400], // MissingRequiredClientCapability
  [-32022, 400], // UnsupportedProtocolVersion
]);
