import type { Random } from '../resume/random.ts';
import type { Answer, Message, Session, SessionOptions } from '../support/http-client.ts';
import type { Ledger } from './ledger.ts';
import type { Stage } from './stage.ts';

/** What clients of one kind do again and again; throws nothing that it has not noted. */
export interface Talker {
  readonly name: string;
  /** How often it is done, about. */
  readonly everyMs: number;
  readonly atOnce?: number;
  once(tools: TalkTools): Promise<void>;
}

/** What they do it with. */
export interface TalkTools {
  readonly stage: Stage;
  readonly ledger: Ledger;
  readonly random: Random;
  readonly stopped: AbortSignal;
  /** A text that nobody else says. */
  mark(): string;
  /**
   * Times what it runs, and notes its outcome under the talker's name, or a part of it. What `run` sees on its way it can
   * tell, which is shown if that is found to be wrong.
   */
  deed(part: string, ownMs: number, run: (tell: (seen: string) => void) => Promise<string>): Promise<string>;
  /** Opens a session, as a deed; undefined where that failed, which is noted. */
  open(url: string, options?: SessionOptions): Promise<Session | undefined>;
  pause(ms: number): Promise<void>;
}

/** Nothing that is done once may take longer, whatever happens. */
export const hangMs = 90_000;

/** How an answer ended, and `wrong answer` for one that is none to what was asked. */
export function outcomeOf(answer: Pick<Answer, 'status' | 'text' | 'messages'>, expected: string): string {
  const message: Message = answer.messages.findLast(({ result, error }: Message) => result ?? error);
  if (message?.error !== undefined) return message.error.data?.reason ?? `error ${message.error.code}`;
  if (answer.status === 502) return 'broken'; // the balancer's, which found no instance
  if (message === undefined) return `status ${answer.status}: ${answer.text.slice(0, 100)}`;
  const text = JSON.stringify(message.result);
  return text.includes(expected) ? 'answered' : `wrong answer: ${text.slice(0, 300)}`;
}

/** How it ended where there is no answer: `broken` by the connection, or the reason of a fault that somebody threw. */
export function outcomeOfError(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException;
  if (/ECONNRE|EPIPE/.test(code ?? '') || /socket hang up|connection closed|aborted|fetch failed/i.test(message))
    return 'broken';
  if (message.startsWith('Ended before')) return 'broken';
  // All that the SDK's client of HTTP+SSE tells of the answer to its GET. Here, only a store that is away makes it 503.
  const [, status] = /^SSE error: Non-200 status code \((\d+)\)/.exec(message) ?? [];
  if (status === '503') return 'store_unavailable';
  if (status === '502') return 'broken';
  // A refused `server/discover` is all the same to the SDK: it tells no reason.
  if (/^Version negotiation failed/.test(message)) return 'store_unavailable';
  const [, reason] = /"reason":"([a-z_]+)"/.exec(message) ?? [];
  if (reason !== undefined) return reason;
  return /(?:initialized? (?:failed with|got)|the stream got) 502/.test(message) ? 'broken' : message; // the balancer's, which gives no reason
}

/** The reason in a fault, or the status that came without one. */
export const reasonOf = ({ status, text }: Answer): string =>
  /"reason":"([a-z_]+)"/.exec(text)?.[1] ?? `status ${status}`;

/** Ends a session by DELETE. */
export async function deleteOf(session: Session): Promise<string> {
  const answer = await session.delete();
  if (answer.status >= 200 && answer.status < 300) return 'answered';
  // Asked of two owners, one after the other, since the answer of the first one was lost.
  const reason = reasonOf(answer);
  return reason === 'unknown_session' ? 'already gone' : reason;
}
