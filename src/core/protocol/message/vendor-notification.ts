import { isKnownMethod } from '../methods/methods.ts';
import type { Message } from './message.ts';

/**
 * True for a notification that no specification defines: only its client and server know its meaning. It names no
 * request, so the transport, or a single call in flight, decides where it goes (docs/eras-reference.md).
 */
export const isVendorNotification = ({ kind, method }: Message): boolean =>
  kind === 'notification' && !isKnownMethod(method);
