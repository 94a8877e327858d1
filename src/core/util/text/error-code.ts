/** Returns the code of an error of the system, TLS or an HTTP client, such as `ENOENT`, or `unknown error` without one. */
export function errorCodeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'unknown error';
}
