/** Times and sizes for every shared server; `docs/reference/configuration.md` explains each. */
export interface SharedProcessLimits {
  readonly maxSharedCalls: number;
  readonly maxQueuedBytes: number;
  readonly graceMs: number;
  readonly requestIdleMs: number;
  readonly requestTotalMs: number;
}
