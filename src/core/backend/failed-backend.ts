import { reportFault } from '../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents } from './backend.ts';

/** A backend that failed to open: it accepts nothing, and ends as soon as the reason is known. */
export function failedBackend(failure: Promise<BackendEnd>, events: BackendEvents): Backend {
  const reported = failure.then((end) => events.onEnd(end)).catch((cause: unknown) => reportFault('backend', cause));
  return {
    pid: undefined,
    send: () => 'ended',
    pause: () => undefined,
    resume: () => undefined,
    close: () => reported,
  };
}
