import type { IncomingMessage } from 'node:http';

/** The value of a header that stands at most once. */
export const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name];
  return value === undefined ? undefined : String(value);
};
