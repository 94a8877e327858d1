import type { Message } from '../../protocol/message/message.ts';

/** Requests that need a session of one's own: otherwise nobody would get their effect, or other clients would. */
const ofSessions: ReadonlySet<string | undefined> = new Set([
  ...['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'],
  ...['tasks/get', 'tasks/result', 'tasks/list', 'tasks/cancel'],
]);

/** True for a request that only a session can serve, including one that begins a task (2025-11-25). */
export const needsSession = (request: Message): boolean => ofSessions.has(request.method) || request.asksForTask;
