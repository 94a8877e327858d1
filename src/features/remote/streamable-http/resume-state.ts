import type { RequestIds } from '../../../core/backend/backend.ts';
import { parseOwn } from '../../../core/protocol/json.ts';

/** State with which another backend can continue a session at the server. It opens the session: a secret (P12). */
export interface ResumeState {
  /** The id of the server's session, where the server gave one. */
  readonly id?: string | undefined;
  readonly version?: string | undefined;
  /** The last event that was read of the standalone stream. */
  readonly cursor?: string | undefined;
  /** The streams that answer requests, and the last event read of each. */
  readonly streams: readonly { readonly ids: RequestIds; readonly cursor: string }[];
}

/** Parses a state that `createResumeStateReporter` reported. */
export const parseResumeState = (text: string): ResumeState => parseOwn(text) as ResumeState;

/** Reports the resume state of a backend, seldom enough to be kept in a store. */
export interface ResumeStateReporter {
  /** The session has begun: reported at once, since no session can be resumed without it. */
  began(): void;
  /** Something new could not be resumed with the last state. */
  changed(): void;
  /** A known stream has moved on: with the last state, more would be repeated than necessary. */
  moved(): void;
  stop(): void;
}

/** A stream that ends sooner than this is not reported, so that short calls cost nothing. */
const soonMs = 250;
const laterMs = 5_000;

export function createResumeStateReporter(
  current: () => ResumeState,
  report: (state: string) => void,
): ResumeStateReporter {
  let lastReported = '';
  let timer: { readonly handle: NodeJS.Timeout; readonly isSoon: boolean } | undefined;
  const run = (): void => {
    timer = undefined;
    const state = JSON.stringify(current());
    if (state === lastReported) return;
    lastReported = state;
    report(state);
  };
  const start = (isSoon: boolean): void => {
    if (timer?.isSoon || (timer !== undefined && !isSoon)) return;
    clearTimeout(timer?.handle);
    timer = { handle: setTimeout(run, isSoon ? soonMs : laterMs).unref(), isSoon };
  };
  return {
    began: run,
    changed: () => start(true),
    moved: () => start(false),
    stop: () => clearTimeout(timer?.handle),
  };
}
