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

/**
 * A UUID, or 32 hexadecimal digits as nginx makes them: the forms that proxies use. No other text of a header is logged,
 * since a client can send anything, also its session id, which has neither form (P12). Whoever logs another header gives it
 * a form of its own, which no id and no secret has.
 */
const requestIdPattern = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Returns the id that a proxy in front has given a request; undefined for any other text. */
export const givenRequestId = (header: string | readonly string[] | undefined): string | undefined =>
  typeof header === 'string' && requestIdPattern.test(header) ? header : undefined;
