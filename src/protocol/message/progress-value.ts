import { scalarAt } from '../json/splice.ts';

/** What a progress notification reports; NaN if that is no number. */
export function readProgressValue(notification: Buffer): number {
  const progress = scalarAt(notification, ['params', 'progress']);
  return typeof progress === 'number' ? progress : Number.NaN;
}
