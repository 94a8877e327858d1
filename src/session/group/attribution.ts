import type { RequestIds } from '../../backend/backend.ts';
import type { Call, CallTable, StreamTarget } from '../../call/call-table.ts';
import { mayRequestInput } from '../../call/rerun.ts';
import type { Message } from '../../protocol/message/message.ts';
import { isVendorNotification } from '../../protocol/message/vendor-notification.ts';
import { isWanted } from '../../protocol/modern/log-levels.ts';

/** Why a message goes to nobody. `unwanted`: no client has asked for it. `nobodys`: it cannot be known whose it is. */
export type Unattributed = 'unwanted' | 'nobodys';

/**
 * Where a message of the server goes in the session of a group, whose calls are those of many clients (P2, P11): as in other
 * sessions where that is known, but never to the newest call for want of better. A question goes to the only call on whose
 * behalf the server can ask, a log message to the only call in flight, if its client wants some, and so does a notification
 * that no specification defines; changes are for the GET stream.
 */
export function attributeInGroup(
  message: Message,
  calls: CallTable,
  of: RequestIds | undefined,
): StreamTarget | Unattributed {
  const { kind, method } = message;
  if (kind === 'request') return asker(message, calls, of) ?? 'nobodys';
  if (method === 'notifications/message') return logDestination(message, calls, of);
  if (method === 'notifications/progress') return reachable(calls.known(message, of)) ?? 'nobodys';
  return isVendorNotification(message) ? vendorDestination(message, calls, of) : 'get';
}

/** Where the transport tells of which request a message is, one that is of none is nobody's. */
function vendorDestination(message: Message, calls: CallTable, of: RequestIds | undefined): Call | Unattributed {
  const call = calls.known(message, of) ?? (of === undefined ? only(calls, () => true) : undefined);
  return reachable(call) ?? 'nobodys';
}

function asker(message: Message, calls: CallTable, of: RequestIds | undefined): Call | undefined {
  const known = calls.known(message, of);
  if (known !== undefined) return mayRequestInput(known.method) ? reachable(known) : undefined;
  return only(calls, ({ method }) => mayRequestInput(method));
}

function logDestination(message: Message, calls: CallTable, of: RequestIds | undefined): Call | Unattributed {
  const wants = ({ logLevel }: Call): boolean => isWanted(message, logLevel);
  const call = calls.known(message, of) ?? only(calls, () => true);
  if (call === undefined) return calls.all().some(wants) ? 'nobodys' : 'unwanted';
  return wants(call) ? (reachable(call) ?? 'nobodys') : 'unwanted';
}

/** The only call of those that clients wait for; undefined if there are several, or none. */
function only(calls: CallTable, is: (call: Call) => boolean): Call | undefined {
  const [first, ...others] = calls.all().filter((call) => is(call) && !call.isGatewayRequest);
  return others.length === 0 ? reachable(first) : undefined;
}

const reachable = (call: Call | undefined): Call | undefined => (call?.answer.hasStream ? call : undefined);
