// The questions about sessions between instances, and their answers. Another version may write other texts.

import type { SessionView } from './session-view.ts';

/** The sessions of an instance that match a search. */
export interface OwnSessions {
  readonly found: number;
  readonly total: number;
  /** The newest ones. */
  readonly sessions: readonly SessionView[];
}

/** A question to all instances. */
export interface SessionsQuestion {
  /** The instance that asks. */
  readonly asks: string;
  readonly question: number;
  readonly search: string;
}

/** The answer of one instance to a question. */
export interface SessionsAnswer extends OwnSessions {
  readonly from: string;
  readonly to: string;
  readonly question: number;
}

/** The maximum length of an answer: below the limit of the store for a change (`maxChangeBytes`). */
const maxAnswerBytes = 60_000;

/** Writes an answer. Sessions that do not fit are left out, oldest first. */
export function writeAnswer(
  { asks: to, question, from }: SessionsQuestion & { readonly from: string },
  { found, total, sessions }: OwnSessions,
): string {
  for (let count = sessions.length; ; count = Math.floor(count / 2)) {
    const text = JSON.stringify({ from, to, question, found, total, sessions: sessions.slice(0, count) });
    if (count === 0 || Buffer.byteLength(text) <= maxAnswerBytes) return text;
  }
}

/** Reads a question; undefined for any other text. */
export function readQuestion(text: Buffer): SessionsQuestion | undefined {
  const { asks, question, search } = readObject(text);
  if (typeof asks !== 'string' || typeof question !== 'number' || typeof search !== 'string') return undefined;
  return { asks, question, search };
}

/** Reads an answer; undefined for any other text. Sessions that are not understood are left out. */
export function readAnswer(text: Buffer): SessionsAnswer | undefined {
  const { from, to, question, found, total, sessions } = readObject(text);
  if (typeof from !== 'string' || typeof to !== 'string' || typeof question !== 'number') return undefined;
  if (typeof found !== 'number' || typeof total !== 'number' || !Array.isArray(sessions)) return undefined;
  return { from, to, question, found, total, sessions: sessions.filter(isSession) };
}

function readObject(text: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text.toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {}; // expected: another version
  }
}

const texts = ['server', 'session', 'revision', 'kind', 'client'] as const;
const numbers = ['calls', 'totalCalls', 'streams', 'messages', 'idleMs', 'upMs'] as const;

function isSession(value: unknown): value is SessionView {
  if (typeof value !== 'object' || value === null) return false;
  const session = value as Readonly<Record<string, unknown>>;
  const { user, failures } = session;
  const hasFailures = failures === undefined || typeof (failures as { count?: unknown }).count === 'number';
  return (
    texts.every((name) => typeof session[name] === 'string') &&
    numbers.every((name) => typeof session[name] === 'number') &&
    (user === undefined || typeof user === 'string') &&
    failures !== null &&
    hasFailures
  );
}
