import type { Adoption } from './adoption.ts';
import type { ClientKind } from './client-state.ts';

/** How a session begins: with a client's `initialize`, or where an earlier owner left it. */
export interface SessionStart extends ClientKind {
  readonly epoch: number;
  /** The client's request, as it was sent. */
  readonly initialize: Buffer;
  readonly adoption?: Adoption;
}
