import type { IncomingMessage } from 'node:http';

/** Returns the value of a header that a request has at most once. */
export const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name];
  return value === undefined ? undefined : String(value);
};
