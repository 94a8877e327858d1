/**
 * Formats the `WWW-Authenticate` header of a refusal (RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9449, section
 * 7.1).
 */
export const challengeHeader = (
  error: string | undefined,
  parameters: readonly string[] = [],
  scheme: 'Bearer' | 'DPoP' = 'Bearer',
): string =>
  `${scheme} ${['realm="mcp-gangway"', ...(error === undefined ? [] : [`error="${error}"`]), ...parameters].join(', ')}`;
