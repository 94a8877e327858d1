/** Formats the `WWW-Authenticate` header of a refusal (RFC 9110, section 11.6.1; RFC 6750, section 3). */
export const challengeHeader = (error: string | undefined, parameters: readonly string[] = []): string =>
  `Bearer ${['realm="mcp-gangway"', ...(error === undefined ? [] : [`error="${error}"`]), ...parameters].join(', ')}`;
