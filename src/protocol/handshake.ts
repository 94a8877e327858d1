/** The revision in a response to `initialize`; undefined if it is an error or names none. */
export function negotiatedVersion(response: Buffer): string | undefined {
  const { result } = JSON.parse(response.toString()) as { result?: { protocolVersion?: unknown } | null };
  return typeof result?.protocolVersion === 'string' ? result.protocolVersion : undefined;
}
