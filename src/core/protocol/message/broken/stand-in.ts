import { faultMessage, type RequestId } from '../../faults.ts';
import { addMembersAtEnd, type FoundValues, parseId, readMembersAtStart } from './members-of-broken-text.ts';

/**
 * Creates a replacement for a server's message that breaks a limit of the scan, so that its receiver need not wait for
 * a timeout. A response becomes an error with the same id. A request loses its params and is then refused. Undefined if
 * neither the beginning nor the end of the text shows the kind and the id.
 * @param text a message that was refused for its depth or width, so that a large value is somewhere in it
 */
export function createStandIn(text: Buffer): string | undefined {
  const members = membersAtEnds(text);
  if (members === undefined) return undefined;
  const id = parseId(members.get('id'));
  if (members.get('jsonrpc') !== '"2.0"' || id === undefined) return undefined;
  const hasOutcome = members.has('result') || members.has('error');
  const method = members.get('method');
  if (method === undefined) return hasOutcome ? faultMessage('response_too_complex', id) : undefined;
  return !hasOutcome && method.startsWith('"')
    ? `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${method}}`
    : undefined;
}

/**
 * The id of a message that is too large to be scanned for it. Undefined if neither the beginning nor the end of the text
 * shows it.
 */
export function idOfLargeText(text: Buffer): RequestId | undefined {
  const members = membersAtEnds(text);
  return members && parseId(members.get('id'));
}

/** The members at the beginning and at the end of a message; undefined if the text is not an object. */
function membersAtEnds(text: Buffer): FoundValues | undefined {
  const members = readMembersAtStart(text)?.values;
  if (members !== undefined) addMembersAtEnd(text, members);
  return members;
}
