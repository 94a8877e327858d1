import { reportFault } from '../util/boundary.ts';
import type { Backend, BackendEnd, BackendEvents } from './backend.ts';

/** A backend that failed to open: it accepts nothing, and ends as soon as the reason is known. */
export function failedBackend(failure: Promise<BackendEnd>, { onEnd }: BackendEvents): Backend {
  const reported = failure.then((end) => onEnd(end)).catch((cause: unknown) => reportFault('backend', cause));
  return {
    pid: undefined,
    send: () => 'ended',
    pause: () => undefined,
    resume: () => undefined,
    close: () => reported,
  };
}
