/**
 * The boundary around each thing that a peer's bytes can reach: a request, a session, a backend, a listener, a timer. What
 * one of them throws is reported and ends that one thing. See docs/decisions/0062.
 */

/** Where a fault of the gateway itself was stopped. */
export type Seam =
  | 'request'
  | 'session'
  | 'backend'
  | 'shared_process'
  | 'store'
  | 'cluster'
  | 'admin'
  /** Timers, probes, sweeps and files that are watched. */
  | 'background';

/** Is told of every fault that a boundary stops. */
export type FaultReporter = (seam: Seam, cause: unknown) => void;

let reporter: FaultReporter | undefined;

/**
 * Says who is told of faults in this process from now on. Composition calls this once, before anything is served.
 * @returns what to call to have the reporter before it again
 */
export function reportFaultsTo(next: FaultReporter): () => void {
  const before = reporter;
  reporter = next;
  return () => {
    reporter = before;
  };
}

/** Reports a fault that its seam has stopped. Without a reporter it is thrown, so that no test passes over one. */
export function reportFault(seam: Seam, cause: unknown): void {
  if (reporter === undefined) throw cause;
  reporter(seam, cause);
}

/**
 * Runs the work of one thing. A throw, or a rejection of the promise that the work returns, is reported and goes no further.
 * @param onFault ends the thing with its defined fault
 */
export function contain(seam: Seam, work: () => unknown, onFault?: (cause: unknown) => void): void {
  try {
    const outcome = work();
    if (outcome instanceof Promise) detach(seam, outcome, onFault);
  } catch (cause) {
    stop(seam, cause, onFault);
  }
}

/**
 * Leaves a promise to itself. Its rejection is reported and goes no further.
 * @param onFault ends the thing that the promise belongs to with its defined fault
 */
export function detach(seam: Seam, promise: Promise<unknown> | undefined, onFault?: (cause: unknown) => void): void {
  promise?.catch((cause: unknown) => stop(seam, cause, onFault));
}

function stop(seam: Seam, cause: unknown, onFault: ((cause: unknown) => void) | undefined): void {
  try {
    onFault?.(cause);
  } catch (another) {
    reportFault(seam, another);
  }
  reportFault(seam, cause);
}
