// Many sessions at once, opened and closed a few at a time.
import { McpSession } from '../lib/mcp-session.mjs';

const atOnce = 8;

export async function openSessions(port, count, { onMessage, token } = {}) {
  const sessions = Array.from({ length: count }, () => new McpSession(port, token));
  for (let i = 0; i < count; i += atOnce) {
    await Promise.all(
      sessions.slice(i, i + atOnce).map(async (session) => {
        await session.open();
        if (onMessage !== undefined) await session.listen(onMessage);
      }),
    );
  }
  return sessions;
}

/** Clients of 2026-07-28, who have no session to open: what their calls of the echo tool say of themselves stands in headers. */
export const statelessClients = (port, count) =>
  Array.from({ length: count }, () => McpSession.without(port, { 'Mcp-Method': 'tools/call', 'Mcp-Name': 'echo' }));

/** How many could not be ended as they should. */
export async function closeSessions(sessions) {
  const statuses = await Promise.all(sessions.map((session) => session.close()));
  return statuses.filter((status) => status === undefined || status >= 300).length;
}
