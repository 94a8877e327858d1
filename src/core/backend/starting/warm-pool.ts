import type { RequestId } from '../../protocol/faults.ts';
import type { Era } from '../../protocol/revisions.ts';
import { contain, detach } from '../../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend } from '../backend.ts';
import { CookieJar } from '../cookie-jar.ts';
import { EarlyOutput } from './early-output.ts';
import { type KeepProbed, ProbedBackend } from './probed-backend.ts';
import { RestartPolicy } from './restart-policy.ts';

/** Options of a pool of warm spares. */
export interface WarmPoolOptions {
  readonly open: OpenBackend;
  /** How many backends are kept started and unused. */
  readonly size: number;
  /** A spare ended before it was used: its server does not start, or does not wait. */
  onSpareEnd(end: BackendEnd): void;
  /** A message or line of a spare was dropped, because the spare had written too much before its use. */
  onOutputDropped(): void;
}

/** A pool of backends started ahead, so that a new session need not wait for its server to start. */
export interface WarmPool {
  /** Opens a backend for a client that begins with `initialize`: a probed one or a spare if there is one. */
  readonly open: OpenBackend;
  /** Opens a backend for clients of the modern era: a probed one or a spare if there is one. */
  readonly openModern: OpenBackend;
  /** Opens a backend for a probe: a spare if there is one. The probe can give it back for the next client. */
  readonly openForProbe: OpenBackend;
  readonly keepProbed: KeepProbed;
  /** Starts one spare beyond `size`; it is ended if it is still unused after `expireMs`. */
  addSpare(expireMs: number): void;
  /** Ends all spares and starts replacements. Resolves when nothing of the ended ones is left. */
  renew(): Promise<void>;
  /** Ends all spares and starts no more. */
  close(): Promise<void>;
}

/** Delay between the use of a spare and the start of its successor: longer than the handshakes of a burst take. */
const refillAfterMs = 50;

/** The limit on the output of a spare before it is used, such as a banner. The rest is dropped and counted (P8). */
const maxEarlyBytes = 64 * 1024;

/** A backend that a probe has given back ends if no client needs it within this time. */
const probedMs = 10_000;

/** Creates a pool that begins to start its spares. */
export function createWarmPool({ open, size, onSpareEnd, onOutputDropped }: WarmPoolOptions): WarmPool {
  const spares: Spare[] = [];
  const probed: ProbedSpare[] = [];
  /** The spares in the hands of probes. */
  const inProbe = new WeakMap<Backend, Spare>();
  let isClosed = false;
  /** A spare that ends before its use counts as a failed start, and one that is used as a start that worked. */
  const restartPolicy = new RestartPolicy({ isRemote: false });
  let restartTimer: NodeJS.Timeout | undefined;
  let refillTimer: NodeJS.Timeout | undefined;

  const remove = (spare: Spare): void => {
    const index = spares.indexOf(spare);
    if (index >= 0) spares.splice(index, 1);
  };

  const start = (): Spare => {
    const early = new EarlyOutput(maxEarlyBytes, onOutputDropped);
    const spare = openSpare(open, early, (end) => {
      remove(spare);
      onSpareEnd(end);
      restartPolicy.countFailedStart();
      clearTimeout(restartTimer);
      restartTimer = setTimeout(fill, restartPolicy.pauseMs).unref();
    });
    spares.push(spare);
    return spare;
  };

  const fill = (): void => {
    refillTimer = undefined;
    while (!isClosed && spares.length < size) start();
  };

  const take = (): Spare | undefined => {
    const spare = spares.shift();
    if (spare === undefined) return undefined;
    restartPolicy.hasWorked = true;
    // The servers that start now would slow down those that answer the handshakes of a burst.
    refillTimer ??= setTimeout(fill, refillAfterMs).unref();
    return spare;
  };

  const removeProbed = (each: ProbedSpare): void => {
    const index = probed.indexOf(each);
    if (index >= 0) probed.splice(index, 1);
    clearTimeout(each.timer);
  };

  /** Ends the probed backends that no client uses. */
  const endProbed = (): Promise<unknown> =>
    Promise.all(
      [...probed].map((each) => {
        removeProbed(each);
        return each.spare.backend.close();
      }),
    );

  const openFor =
    (era: Era): OpenBackend =>
    (events, options) => {
      // A balancer would not know the spare by the cookies of the session.
      const { resume, cookies } = options ?? {};
      if (resume !== undefined || cookies?.state !== undefined) return open(events, options);
      const found = probed.find((each) => each.era === era);
      if (found === undefined) return take()?.use(events, cookies) ?? open(events, options);
      removeProbed(found);
      const openFresh: OpenBackend = (receiver) => open(receiver, options);
      return new ProbedBackend((receiver) => found.spare.use(receiver, cookies), found.open, openFresh, events);
    };

  const keep = (spare: Spare, era: Era, openIds: ReadonlySet<RequestId>): void => {
    const kept: ProbedSpare = { spare, era, open: openIds, timer: setTimeout(expire, probedMs).unref() };
    function expire(): void {
      removeProbed(kept);
      detach('backend', spare.backend.close());
    }
    spare.putBack(new EarlyOutput(maxEarlyBytes, onOutputDropped), () => removeProbed(kept));
    if (isClosed || spare.hasEnded) return expire();
    probed.push(kept);
  };

  fill();
  return {
    open: openFor('legacy'),
    openModern: openFor('modern'),
    openForProbe(events, options) {
      const early = new EarlyOutput(maxEarlyBytes, onOutputDropped);
      const spare =
        take() ??
        openSpare(
          (receiver, opening) => open(receiver, { ...options, ...opening }),
          early,
          () => undefined,
        );
      const backend = spare.use(events);
      inProbe.set(backend, spare);
      return backend;
    },
    keepProbed(backend, era, openIds) {
      const spare = inProbe.get(backend);
      if (spare !== undefined) keep(spare, era, openIds);
    },
    addSpare(expireMs) {
      const spare = start();
      setTimeout(() => {
        if (spares.length <= size || !spares.includes(spare)) return;
        remove(spare);
        detach('backend', spare.backend.close());
      }, expireMs).unref();
    },
    async renew() {
      const ended = Promise.all([endProbed(), ...spares.splice(0).map((spare) => spare.backend.close())]);
      fill();
      await ended;
    },
    async close() {
      isClosed = true;
      clearTimeout(restartTimer);
      clearTimeout(refillTimer);
      await Promise.all([endProbed(), ...spares.splice(0).map((spare) => spare.backend.close())]);
    },
  };
}

interface Spare {
  readonly backend: Backend;
  readonly hasEnded: boolean;
  /**
   * Hands the backend over: from now on it reports to these events, first the early messages.
   * @param cookies get those of the server
   */
  use(events: BackendEvents, cookies?: CookieJar): Backend;
  /** Takes the backend back: from now on this output is kept for the next user. */
  putBack(early: EarlyOutput, onUnusedEnd: (end: BackendEnd) => void): void;
}

/** A backend that a probe has given back. */
interface ProbedSpare {
  readonly spare: Spare;
  readonly era: Era;
  /** The probe's requests that the server may still answer. */
  readonly open: ReadonlySet<RequestId>;
  readonly timer: NodeJS.Timeout;
}

function openSpare(open: OpenBackend, firstOutput: EarlyOutput, onFirstEnd: (end: BackendEnd) => void): Spare {
  let isUsed = false;
  let hasEnded = false;
  /** Counts those who have, or had, the backend. */
  let user = 0;
  let early = firstOutput;
  let onUnusedEnd = onFirstEnd;
  let receiver: BackendEvents = early;
  const ownCookies = new CookieJar();
  const unused: BackendEvents = {
    onMessages: (messages, relatedRequests) => receiver.onMessages(messages, relatedRequests),
    onNoise: (text, more) => receiver.onNoise(text, more),
    onUnanswered: (ids, reason, isFinal) => receiver.onUnanswered(ids, reason, isFinal),
    onState: (state) => receiver.onState?.(state),
    onEnd(end) {
      hasEnded = true;
      if (isUsed) receiver.onEnd(end);
      else if (end.reason !== 'closed') onUnusedEnd(end);
    },
  };
  const backend = open(unused, { cookies: ownCookies });
  return {
    backend,
    get hasEnded() {
      return hasEnded;
    },
    putBack(output, onEnd) {
      isUsed = false;
      user += 1;
      early = output;
      onUnusedEnd = onEnd;
      receiver = output;
    },
    use(events, cookies) {
      isUsed = true;
      cookies?.follow(ownCookies);
      const own = ++user;
      queueMicrotask(() => {
        if (own !== user) return;
        receiver = events;
        const close = (): void => detach('backend', backend.close());
        contain('backend', () => early.deliver(events), close);
      });
      return backend;
    },
  };
}
