import { maxUnreachableMs, pauseBeforeReconnect } from '../http-client/reconnect-pause.ts';
import {
  type ModernPostFailure,
  type ModernPostOptions,
  type ModernPostOutcome,
  type ModernRequestPost,
  postModernRequest,
} from './modern-post.ts';

/** Statuses that pass: the server, or what stands before it, is busy or starts again. */
const passing: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** A stream that lived for so long was no failure: the next one is opened at once. */
const soundMs = 5_000;

/**
 * Keeps a subscription over all the streams that it takes: one that ends or breaks without a response is opened again
 * (2026-07-28, basic/patterns/subscriptions), and its acknowledgement tells whoever listens that something was missed. Ends
 * with the server's response, with what it refused the first stream for, or when it has been away for `maxAwayMs`. Never
 * rejects.
 */
export async function keepSubscription(
  asking: ModernRequestPost,
  parts: ModernPostOptions,
): Promise<ModernPostOutcome> {
  let failures = 0;
  let hasBegun = false;
  let openSince = performance.now();
  let awaySince = openSince;
  for (;;) {
    let isOpen = false;
    const outcome = await postModernRequest(
      {
        ...asking,
        onNotifications(messages) {
          if (!isOpen) openSince = performance.now();
          isOpen = true;
          hasBegun = true;
          asking.onNotifications(messages);
        },
      },
      parts,
    );
    if (outcome.ok || !hasBegun || asking.canceller.aborted || !mayPass(outcome)) return outcome;
    const now = performance.now();
    if (isOpen) awaySince = now;
    const leftMs = awaySince + maxUnreachableMs - now;
    if (!isOpen && leftMs <= 0) return outcome;
    if (isOpen && now - openSince > soundMs) failures = 0;
    if (!(await pauseBeforeReconnect(failures++, { leftMs, signal: asking.canceller.signal }))) return outcome;
  }
}

const mayPass = ({ reason, status = 0 }: ModernPostFailure): boolean =>
  reason === 'server_unreachable' || reason === 'server_silent' || passing.has(status);
