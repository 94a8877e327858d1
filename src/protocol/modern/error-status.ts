import { errorCodeIn } from '../json/splice.ts';
import type { Message } from '../message/message.ts';

/**
 * The HTTP status of a server's response, where it is the first that a client gets (2026-07-28,
 * basic/transports/streamable-http). Only these errors have one of their own; all others are answers like any result.
 * @param method of the request
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
 * Methods that name one of several things, and their capability. Servers answer -32601 for a thing that is missing, too. A
 * client that reads 404 takes the method for missing, and does not read the error.
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
