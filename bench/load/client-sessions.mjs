// Many sessions at once, opened and closed a few at a time.
import { McpSession } from '../lib/mcp-session.mjs';

const openedAtOnce = 8;
const closedAtOnce = 64;

/** @param by the port of the instance by way of which the opened sessions are called, if not by those of `ports` */
export async function openSessions(ports, count, { onMessage, token, path, by } = {}) {
  const sessions = Array.from({ length: count }, () => new McpSession(ports, { token, path }));
  for (let i = 0; i < count; i += openedAtOnce) {
    await Promise.all(
      sessions.slice(i, i + openedAtOnce).map(async (session) => {
        await session.open();
        if (onMessage !== undefined) await session.listen(onMessage);
        session.rest(); // thousands would hold a connection each that nothing needs
      }),
    );
  }
  return by === undefined ? sessions : sessions.map((session) => session.at(by));
}

/**
 * The clients of a job that calls a tool, and `close`, which says how many could not be ended. Those of 2026-07-28 have no session to open: what
 * their calls say of themselves stands in headers.
 */
export async function openClients({ ports, sessions: count, era, token, path, by }, tool, onMessage) {
  if (era === 'modern') {
    const headers = { 'Mcp-Method': 'tools/call', 'Mcp-Name': tool };
    const clients = Array.from({ length: count }, () => McpSession.without(ports, headers));
    return { sessions: clients, close: async () => 0 };
  }
  const sessions = await openSessions(ports, count, { onMessage, token, path, by });
  return { sessions, close: () => closeSessions(sessions) };
}

/** How many could not be ended as they should. */
export async function closeSessions(sessions) {
  let notClosed = 0;
  for (let i = 0; i < sessions.length; i += closedAtOnce) {
    const some = sessions.slice(i, i + closedAtOnce);
    const statuses = await Promise.all(some.map((session) => session.close()));
    notClosed += statuses.filter((status) => status === undefined || status >= 300).length;
  }
  return notClosed;
}
