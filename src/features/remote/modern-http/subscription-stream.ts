import { maxUnreachableMs, pauseBeforeReconnect } from '../../../core/backend/reconnect-pause.ts';
import {
  type ModernPostOutcome,
  type ModernRequestPost,
  postModernRequest,
  type StatelessServer,
} from './modern-post.ts';

/** Temporary statuses: the server, or a proxy before it, is busy or restarts. */
const temporaryStatuses: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * A stream that lived this long was no failure: the pause before the next one is short again. Proxies cut idle streams,
 * some every few seconds.
 */
const healthyMs = 1_000;

/**
 * Keeps a subscription over as many streams as it needs: a stream that ends or breaks without a response is reopened
 * (2026-07-28, basic/patterns/subscriptions). The new acknowledgement tells listeners that they may have missed
 * something. Ends with the server's response, with the refusal of the first stream, or when the server was away for
 * `maxUnreachableMs`. Never rejects.
 */
export async function keepSubscription(post: ModernRequestPost, server: StatelessServer): Promise<ModernPostOutcome> {
  let failures = 0;
  let hasBegun = false;
  let openSince = performance.now();
  let awaySince = openSince;
  for (;;) {
    let isOpen = false;
    const outcome = await postModernRequest(
      {
        ...post,
        onNotifications(messages) {
          if (!isOpen) openSince = performance.now();
          isOpen = true;
          hasBegun = true;
          post.onNotifications(messages);
        },
      },
      server,
    );
    if (outcome.ok || !hasBegun || post.canceller.aborted || !isTemporary(outcome)) return outcome;
    const now = performance.now();
    if (isOpen) awaySince = now;
    const leftMs = awaySince + maxUnreachableMs - now;
    if (!isOpen && leftMs <= 0) return outcome;
    if (isOpen && now - openSince > healthyMs) failures = 0;
    if (!(await pauseBeforeReconnect(failures++, { leftMs, signal: post.canceller.signal }))) return outcome;
  }
}

const isTemporary = ({ reason, status = 0 }: Exclude<ModernPostOutcome, { ok: true }>): boolean =>
  reason === 'server_unreachable' || temporaryStatuses.has(status);
