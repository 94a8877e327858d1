import { contain, detach, reportFault } from '../boundary.ts';
import type { BackendEnd, BackendEvents, OpenBackend } from './backend.ts';

const faulty: BackendEnd = {
  reason: 'failed',
  detail: 'The gateway itself failed at a message of this server. The log has the stack.',
};

/**
 * Keeps faults at the backend where they happen. What the listener of its events throws, or the backend itself throws when it
 * is asked for something, is reported and ends that backend as `failed`, told once as any end is.
 */
export const contained =
  (open: OpenBackend): OpenBackend =>
  (events, options) => {
    let isEnded = false;
    let isFaulty = false;
    const fail = (cause: unknown): void => {
      if (isEnded || isFaulty) return;
      isFaulty = true;
      // Outside of any call into the backend, and after whoever opened it has it.
      queueMicrotask(() => {
        detach('backend', backend.close());
        end({ ...faulty, cause });
      });
    };
    const end = (told: BackendEnd): void => {
      if (isEnded) return;
      isEnded = true;
      contain('backend', () => events.onEnd(told));
    };
    const tell = (work: () => void): void => {
      if (!isEnded && !isFaulty) contain('backend', work, fail);
    };
    const own: BackendEvents = {
      onMessages: (messages, of) => tell(() => events.onMessages(messages, of)),
      onUnanswered: (ids, reason, isFinal) => tell(() => events.onUnanswered(ids, reason, isFinal)),
      onEnd: (told) => {
        // The fault was first, and closing the backend is what followed.
        if (!isFaulty) end(told);
      },
      ...(events.onState && { onState: (state: string) => tell(() => events.onState?.(state)) }),
    };
    const backend = open(own, options);
    return {
      get pid() {
        return backend.pid;
      },
      send(message, headers) {
        if (isFaulty) return 'ended';
        try {
          return backend.send(message, headers);
        } catch (cause) {
          fail(cause);
          reportFault('backend', cause);
          return 'ended';
        }
      },
      pause: () => contain('backend', () => backend.pause(), fail),
      resume: () => contain('backend', () => backend.resume(), fail),
      close: (how) => backend.close(how),
    };
  };
