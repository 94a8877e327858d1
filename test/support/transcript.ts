import type { RequestId } from '../../src/core/protocol/faults.ts';
import type { Message } from './http-client.ts';
import type { Listened } from './resuming-client.ts';
import type { SseEvent } from './sse-reader.ts';

/** One connection of a client, and its purpose. */
export interface RecordedConnection extends Listened {
  /** The call whose answer this connection follows; undefined for the GET stream. */
  readonly call: RequestId | undefined;
}

/** One request of a client. */
export interface RecordedCall {
  readonly id: RequestId;
  /** The text in every message of its server: `mark=<session>/<call>.` */
  readonly mark: string;
  /** True for a call that must not run twice: its tool was not declared harmless. */
  readonly isOnce: boolean;
  /** The client did not follow it to its end, so that nothing can be said of its answer. */
  readonly isGivenUp: boolean;
  /** By `performance.now()`, which tells how long it took; `endedAt` when it was answered or its client stopped. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  /** How long it may take from `startedAt` on; without it as long as its client waits. */
  readonly deadlineMs?: number;
}

/** The record of one session's client. */
export interface SessionTranscript {
  /** A name without blanks. The marks of its calls begin with this name. */
  readonly name: string;
  /** The value of `Mcp-Session-Id`. */
  readonly sessionId: string;
  readonly calls: readonly RecordedCall[];
  readonly connections: readonly RecordedConnection[];
  /** The session was ended by its client or its gateway, and its log with it. */
  readonly isEnded: boolean;
}

/** The mark of a call. */
export const markOf = (session: string, call: RequestId): string => `mark=${session}/${call}.`;

/** The marks in a text, each with the session it names. */
export const marksIn = (text: string): { readonly mark: string; readonly session: string }[] =>
  [...text.matchAll(/mark=([^/\s"]+)\/[^.\s"]+\./g)].map(([mark, session = '']) => ({ mark, session }));

/** The message of an event; undefined for a priming event. Throws on what is no JSON. */
export const messageOf = ({ data }: Pick<SseEvent, 'data'>): Message | undefined =>
  data === undefined || data === '' ? undefined : JSON.parse(data);

/** True for a response: an answer to a request of the client. */
export const isResponseMessage = (message: Message): boolean =>
  message.method === undefined && (message.result !== undefined || message.error !== undefined);
