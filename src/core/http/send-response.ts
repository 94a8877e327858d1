import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';

/** The library asks for the request of a response, and uses nothing of it. */
const anyRequest = { method: 'GET', url: '/', headers: {} } as IncomingMessage;

/**
 * Sends a response of hono on a response of Node.js. Only the router imports this file, when it has the first such
 * response.
 */
export async function sendResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  const options = { hostname: 'localhost', overrideGlobalObjects: false, autoCleanupIncoming: false };
  await getRequestListener(() => response, options)(anyRequest, outgoing);
}
