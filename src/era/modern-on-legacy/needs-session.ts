import type { Message } from '../../protocol/message/message.ts';

/** Requests whose outcome nobody would hear of, or that would change what others hear, without a session of one's own. */
const ofSessions: ReadonlySet<string | undefined> = new Set([
  ...['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel'],
]);

/** True for a request that begins what only a session goes on with, a task (2025-11-25) too. */
export const needsSession = (request: Message): boolean => ofSessions.has(request.method) || request.asksForTask;
