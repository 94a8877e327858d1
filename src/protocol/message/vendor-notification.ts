import type { Message } from './message.ts';

/** The notifications of all revisions that the gateway knows, and of their extensions. */
const specified: ReadonlySet<string | undefined> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/message',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/roots/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/subscriptions/acknowledged',
  'notifications/elicitation/complete',
  'notifications/tasks/status',
  'notifications/tasks',
]);

/**
 * True for a notification that no specification defines: only its client and server know its meaning. It names no
 * request, so the transport, or a single call in flight, decides where it goes (docs/eras.md).
 */
export const isVendorNotification = ({ kind, method }: Message): boolean =>
  kind === 'notification' && !specified.has(method);
