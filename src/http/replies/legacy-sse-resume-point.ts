import { randomBytes } from 'node:crypto';
import { type EventId, formatEventId, parseEventId } from '../../protocol/wire/event-id.ts';

/**
 * A client's place on its only stream. On the wire an event id says which session it is of, since a client of HTTP+SSE
 * (2024-11-05) that reconnects has nothing else to say it with: `<endpoint token>.<event id>`.
 */
export interface LegacySseResumePoint {
  /** The session's secret: whoever has it is its client, as far as authentication does not tell more. */
  readonly token: string;
  readonly after: EventId;
}

/** Before everything: where a new stream begins, and where one is that has heard nothing but its endpoint. */
export const beginningOfStream: EventId = { stream: 0, epoch: 0, seq: 0 };

/** 32 bytes in base64url. */
const tokenForm = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** A new endpoint token: 256 random bits. */
export const newEndpointToken = (): string => randomBytes(32).toString('base64url');

/** True for what `newToken` could have made. */
export const isEndpointToken = (text: string): boolean => tokenForm.test(text);

/** The event id of a place, as `formatEventId`'s text with the token before it. */
export const formatLegacySseEventId = (token: string, eventId: string): string => `${token}.${eventId}`;

/** The text of an event id that a client has when it has heard nothing but its endpoint. */
export const firstLegacySseEventId = (token: string): string =>
  formatLegacySseEventId(token, formatEventId(0, beginningOfStream));

/** Reads a Last-Event-ID strictly; undefined for what `formatPlace` does not make. */
export function parseLegacySseEventId(text: string): LegacySseResumePoint | undefined {
  const dot = text.indexOf('.');
  const token = text.slice(0, Math.max(0, dot));
  const after = parseEventId(text.slice(dot + 1));
  return after !== undefined && isEndpointToken(token) ? { token, after } : undefined;
}
