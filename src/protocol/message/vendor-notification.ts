import type { Message } from './message.ts';

/** The notifications of all revisions that are known here, and of their extensions. */
const specified: ReadonlySet<string | undefined> = new Set([
  ...['notifications/initialized', 'notifications/cancelled', 'notifications/progress', 'notifications/message'],
  ...['notifications/tools/list_changed', 'notifications/prompts/list_changed', 'notifications/roots/list_changed'],
  ...['notifications/resources/list_changed', 'notifications/resources/updated'],
  ...['notifications/subscriptions/acknowledged', 'notifications/elicitation/complete'],
  ...['notifications/tasks/status', 'notifications/tasks'],
]);

/**
 * True for a notification that no specification defines: what it means is known to its client and server alone. It says of
 * no request, so that it goes where the transport, or a single call in flight, says that it belongs (docs/eras.md).
 */
export const isVendorNotification = ({ kind, method }: Message): boolean =>
  kind === 'notification' && !specified.has(method);
