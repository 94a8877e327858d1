import { contain, detach, reportFault } from '../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents, OpenBackend } from './backend.ts';
import { failedBackend } from './failed-backend.ts';

/**
 * Wraps event callbacks: an exception of the listener goes to `onFault`. It must not propagate into the backend that
 * calls it.
 */
export function reportListenerFaults(events: BackendEvents, onFault: (cause: unknown) => void): BackendEvents {
  const callListener = (work: () => void): void => {
    try {
      work();
    } catch (cause) {
      onFault(cause);
    }
  };
  return {
    onMessages: (...args) => callListener(() => events.onMessages(...args)),
    onNoise: (text) => callListener(() => events.onNoise(text)),
    onUnanswered: (...args) => callListener(() => events.onUnanswered(...args)),
    onEnd: (end) => callListener(() => events.onEnd(end)),
    ...(events.onState && { onState: (state: string) => callListener(() => events.onState?.(state)) }),
  };
}

/** The end of a backend after an internal error. */
export const endedByFault: BackendEnd = {
  reason: 'failed',
  detail: 'An internal error occurred while the gateway processed a message from this server. The log has the stack.',
};

/**
 * Keeps faults at the backend where they happen. An exception of the event listener, or of the backend itself, is
 * reported. It ends that backend as `failed`, once like any end.
 */
export const containFaults =
  (open: OpenBackend): OpenBackend =>
  (events, options) => {
    let isEnded = false;
    let isFaulty = false;
    const fail = (cause: unknown): void => {
      if (isFaulty) return;
      isFaulty = true;
      // Outside of any call into the backend, and after `open` has returned it to its caller.
      queueMicrotask(() => {
        detach('backend', backend.close());
        end({ ...endedByFault, cause });
      });
    };
    const end = (reason: BackendEnd): void => {
      if (isEnded) return;
      isEnded = true;
      contain('backend', () => events.onEnd(reason));
    };
    const failAndReport = (cause: unknown): void => {
      fail(cause);
      reportFault('backend', cause);
    };
    // After a fault nothing is reported except the end it causes.
    const eventsUntilFault: BackendEvents = {
      onMessages: (...args) => isFaulty || events.onMessages(...args),
      onNoise: (text) => isFaulty || events.onNoise(text),
      onUnanswered: (...args) => isFaulty || events.onUnanswered(...args),
      onEnd: (reason) => isFaulty || end(reason),
      ...(events.onState && { onState: (state: string) => isFaulty || events.onState?.(state) }),
    };
    let backend: Backend;
    try {
      backend = open(reportListenerFaults(eventsUntilFault, failAndReport), options);
    } catch (cause) {
      reportFault('backend', cause);
      return failedBackend(Promise.resolve({ ...endedByFault, cause }), { ...events, onEnd: end });
    }
    return {
      get pid() {
        return backend.pid;
      },
      send(message, headers) {
        if (isFaulty) return 'ended';
        try {
          return backend.send(message, headers);
        } catch (cause) {
          failAndReport(cause);
          return 'ended';
        }
      },
      pause: () => contain('backend', () => backend.pause(), fail),
      resume: () => contain('backend', () => backend.resume(), fail),
      close: (how) => backend.close(how),
    };
  };
