import type { IncomingMessage } from 'node:http';

/** What an authenticator looks at of a request. */
export const requestWith = (
  headers: Readonly<Record<string, string>> = {},
  { url = '/mcp', remoteAddress = '127.0.0.1' } = {},
): IncomingMessage => ({ headers, url, socket: { remoteAddress } }) as unknown as IncomingMessage;
