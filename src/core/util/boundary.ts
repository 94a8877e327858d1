// src/core/util: small helpers without knowledge of MCP, HTTP or the gateway. Every other folder may import them.

/**
 * The boundary around each thing that a peer's bytes can reach: a request, a session, a backend, a listener, a timer. A
 * throw inside one of them is reported and ends that one thing (docs/decisions/0062).
 */

/** The place where a fault of the gateway itself was stopped. */
export type Seam =
  | 'request'
  | 'session'
  | 'backend'
  | 'shared_process'
  | 'store'
  | 'cluster'
  | 'admin'
  /** Timers, probes, sweeps, watched files, and sinks of events. */
  | 'background';

/** Receives every fault that a boundary stops. */
export type FaultReporter = (seam: Seam, cause: unknown) => void;

let reporter: FaultReporter | undefined;

/**
 * Sets the reporter of faults in this process. Composition calls this once, before the gateway serves anything.
 * @returns a function that restores the previous reporter
 */
export function reportFaultsTo(next: FaultReporter): () => void {
  const before = reporter;
  reporter = next;
  return () => {
    reporter = before;
  };
}

/** Reports a fault that its seam has stopped. Without a reporter the fault is thrown, so that no test overlooks one. */
export function reportFault(seam: Seam, cause: unknown): void {
  if (reporter === undefined) throw cause;
  reporter(seam, cause);
}

/**
 * Runs the work of one thing. A throw, or a rejection of the promise that the work returns, is reported and goes no
 * further.
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
 * Lets a promise run on its own. A rejection is reported and goes no further.
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
