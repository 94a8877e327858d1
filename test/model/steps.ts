import type { State } from './state.ts';

/** How a transition is added. */
export interface StepOptions {
  /** The environment need not do it. */
  readonly isFault?: boolean;
  /** The only process that it changes. */
  readonly of?: number;
}

/** Adds a transition: a label for the trace, and what it changes in a copy of the state. */
export type Add = (label: string, change: (next: State) => void, options?: StepOptions) => void;
