import { randomBytes } from 'node:crypto';
import { type EventId, formatEventId, parseEventId } from '../../protocol/wire/event-id.ts';

/**
 * A client's place on its only stream. On the wire an event id says which session it is of, since a client of HTTP+SSE
 * (2024-11-05) that reconnects has nothing else to say it with: `<endpoint token>.<event id>`.
 */
export interface SsePlace {
  /** The session's secret: whoever has it is its client, as far as authentication does not tell more. */
  readonly token: string;
  readonly after: EventId;
}

/** Before everything: where a new stream begins, and where one is that has heard nothing but its endpoint. */
export const beginning: EventId = { stream: 0, epoch: 0, seq: 0 };

/** 32 bytes in base64url. */
const tokenForm = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** A new endpoint token: 256 random bits. */
export const newToken = (): string => randomBytes(32).toString('base64url');

/** True for what `newToken` could have made. */
export const isToken = (text: string): boolean => tokenForm.test(text);

/** The event id of a place, as `formatEventId`'s text with the token before it. */
export const formatPlace = (token: string, eventId: string): string => `${token}.${eventId}`;

/** The text of an event id that a client has when it has heard nothing but its endpoint. */
export const beginningOf = (token: string): string => formatPlace(token, formatEventId(0, beginning));

/** Reads a Last-Event-ID strictly; undefined for what `formatPlace` does not make. */
export function parsePlace(text: string): SsePlace | undefined {
  const dot = text.indexOf('.');
  const token = text.slice(0, Math.max(0, dot));
  const after = parseEventId(text.slice(dot + 1));
  return after !== undefined && isToken(token) ? { token, after } : undefined;
}
