import type { IncomingMessage } from 'node:http';

/** Returns the value of a header that a request has at most once. */
export const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name];
  return value === undefined ? undefined : String(value);
};

/** Returns the path of a request target, unchanged: everything before the query. */
export function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}
