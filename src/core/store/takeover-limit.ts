import { backoff } from '../util/timing/backoff.ts';

/**
 * Limits of takeovers that follow each other without progress, each after a lost owner: the session may be what kills
 * its owners. Later takeovers have to wait, and after many of them the session ends (docs/decisions/0015).
 * `SessionRecords.confirmTakeover` reports progress.
 */

/** How many takeovers without progress need no pause. */
export const freeTakeovers = 2;

/** The pause between the last takeover and the next one. The pause doubles with each takeover, up to a limit. */
export const firstTakeoverPauseMs = 10_000;
export const longestTakeoverPauseMs = 60_000;

/**
 * The takeover after this many without progress ends the session. With the pauses that takes more than four minutes.
 */
export const maxTakeovers = 8;

/** The count of takeovers starts again after this time without a takeover. */
export const takeoverWindowMs = 600_000;

const pauseAfter = backoff({ firstMs: firstTakeoverPauseMs, maxMs: longestTakeoverPauseMs });

/** Returns the pause after the last takeover of a session that has had `count` takeovers without progress. */
export const takeoverPauseMs = (count: number): number =>
  count < freeTakeovers ? 0 : pauseAfter(count - freeTakeovers);
