import type { IncomingMessage } from 'node:http';
import type { Reason } from '../protocol/faults.ts';
import { isHost, type OriginRules } from './origin.ts';
import { hasSingleHeaders } from './single-headers.ts';

/** Why a request is refused by its headers, whatever it asks for; undefined if it is not. */
export function refuseRequest({ headers, rawHeaders }: IncomingMessage, originRules: OriginRules): Reason | undefined {
  if (!hasSingleHeaders(rawHeaders)) return 'duplicate_header';
  if (!isHost(headers.host)) return 'bad_host';
  if (!originRules.allowsHost(headers.host)) return 'host_not_allowed';
  return originRules.allowsOrigin(headers.origin) ? undefined : 'origin_not_allowed';
}

/** The value of a header that stands at most once. */
export const headerOf = ({ headers }: IncomingMessage, name: string): string | undefined => {
  const value = headers[name];
  return value === undefined ? undefined : String(value);
};
