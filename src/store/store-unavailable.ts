/**
 * The store did not answer, or would not: nothing is known of what was asked, and it may be asked again
 * (docs/design.md, D11). `unreachable`: no connection, or no answer in time. `full`: it is out of memory and refuses
 * writes. `refused`: it answered with an error (no permission, wrong type, read-only replica); the cause says more, for logs only.
 */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
  readonly reason: 'unreachable' | 'full' | 'refused';

  constructor(reason: 'unreachable' | 'full' | 'refused', cause?: unknown) {
    super(`the store is ${reason === 'refused' ? 'refusing requests' : reason}`, { cause });
    this.reason = reason;
  }
}
