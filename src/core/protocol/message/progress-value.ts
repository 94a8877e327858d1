import { scalarAt } from '../json.ts';

/** The progress that a notification reports; NaN if it is not a number. */
export function readProgressValue(notification: Buffer): number {
  const progress = scalarAt(notification, ['params', 'progress']);
  return typeof progress === 'number' ? progress : Number.NaN;
}
