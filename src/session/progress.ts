/** What a progress notification reports; NaN if that is no number. */
export function progressOf(notification: Buffer): number {
  const { params } = JSON.parse(notification.toString()) as { params?: { progress?: unknown } };
  const progress = params?.progress;
  return typeof progress === 'number' ? progress : Number.NaN; // `Number` of an object from a peer can throw
}
