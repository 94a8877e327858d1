/** Times and sizes for every shared server; `docs/reference/configuration.md` explains each. */
export interface SharedProcessLimits {
  readonly maxSharedCalls: number;
  readonly maxQueuedBytes: number;
  readonly cancelGraceMs: number;
  readonly requestIdleMs: number;
  readonly requestMaxMs: number;
}
