import { entryOf, isReason, type Reason } from './faults.ts';
import { type Message, memberValue } from './message.ts';

/**
 * The reason that an error response of the gateway itself gives, by which it can be said again in another form; undefined for
 * a result, and for what a server said.
 */
export function ownFaultOf(response: Message): Reason | undefined {
  const error = memberValue(response, 'message', 'error') as ErrorValue | null | undefined;
  const reason = error?.data?.reason;
  if (error == null || !isReason(reason)) return undefined;
  const { code, message } = entryOf(reason);
  return error.code === code && error.message === message ? reason : undefined;
}

interface ErrorValue {
  readonly code?: unknown;
  readonly message?: unknown;
  readonly data?: { readonly reason?: unknown } | null;
}
