import { randomBytes } from 'node:crypto';
import { type EventId, formatEventId, parseEventId } from '../../protocol/wire/event-id.ts';

/**
 * A client's position on its only stream. A client of HTTP+SSE (2024-11-05) that reconnects sends nothing but an event
 * id. So the event id on the wire also names the session: `<endpoint token>.<event id>`.
 */
export interface LegacySseResumePoint {
  /** The session's secret: a request with it counts as the session's client, unless authentication says otherwise. */
  readonly token: string;
  readonly after: EventId;
}

/** The position before everything: the start of a new stream, also after only the endpoint event was sent. */
export const beginningOfStream: EventId = { stream: 0, epoch: 0, seq: 0 };

/** 32 bytes in base64url. */
const tokenPattern = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Creates a new endpoint token: 256 random bits. */
export const newEndpointToken = (): string => randomBytes(32).toString('base64url');

/** True for a text that `newEndpointToken` could have made. */
export const isEndpointToken = (text: string): boolean => tokenPattern.test(text);

/** Returns the event id of a position: the token before the text of `formatEventId`. */
export const formatLegacySseEventId = (token: string, eventId: string): string => `${token}.${eventId}`;

/** Returns the event id of a client that has received only the endpoint event. */
export const firstLegacySseEventId = (token: string): string =>
  formatLegacySseEventId(token, formatEventId(0, beginningOfStream));

/** Parses a Last-Event-ID strictly; undefined for a text that `formatLegacySseEventId` does not make. */
export function parseLegacySseEventId(text: string): LegacySseResumePoint | undefined {
  const dot = text.indexOf('.');
  const token = text.slice(0, Math.max(0, dot));
  const after = parseEventId(text.slice(dot + 1));
  return after !== undefined && isEndpointToken(token) ? { token, after } : undefined;
}
