import { setTimeout as pause } from '../support/fake-delay.ts';

/** In place of `node:timers/promises`: every pause is as short as a timer can be, and ends with its signal as well. */
export const setTimeout = <T>(_ms: number, value?: T, options?: { readonly signal?: AbortSignal }) =>
  pause(1, value, options);
