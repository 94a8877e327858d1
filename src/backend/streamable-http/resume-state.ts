import type { RequestIds } from '../backend.ts';

/** What another backend needs to go on with a session at the server. It opens the session: a secret (P12). */
export interface ResumeState {
  /** Of the server's session, where it gave one. */
  readonly id?: string | undefined;
  readonly version?: string | undefined;
  /** The last event that was read of the standalone stream. */
  readonly cursor?: string | undefined;
  /** The streams that answer requests, and up to where they were read. */
  readonly streams: readonly { readonly ids: RequestIds; readonly cursor: string }[];
}

/** Reads what `createStateTeller` told. */
export const parseResumeState = (text: string): ResumeState => JSON.parse(text) as ResumeState;

/** Tells where a backend stands, seldom enough to be kept in a store. */
export interface ResumeStateReporter {
  /** The session has begun: without that nothing could be gone on with. */
  began(): void;
  /** There is something that could not be gone on with by what was told last. */
  changed(): void;
  /** Something that was told has gone on: what was told would only be repeated longer than needed. */
  moved(): void;
  stop(): void;
}

/** A stream that ends sooner than this is not told of, so that short calls cost nothing. */
const soonMs = 250;
const laterMs = 5_000;

export function createResumeStateReporter(
  current: () => ResumeState,
  tell: (state: string) => void,
): ResumeStateReporter {
  let told = '';
  let timer: { readonly handle: NodeJS.Timeout; readonly isSoon: boolean } | undefined;
  const run = (): void => {
    timer = undefined;
    const state = JSON.stringify(current());
    if (state === told) return;
    told = state;
    tell(state);
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
