/** The protocol revisions of the legacy era, oldest first. Their sessions open with `initialize`. */
export const legacyRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;

/**
 * The revisions of the modern era, oldest first. Each request names its revision in `_meta` (2026-07-28,
 * basic/versioning).
 */
export const modernRevisions = ['2026-07-28'] as const;

/** The two eras of the protocol: sessions that open with `initialize`, or requests that are complete by themselves. */
export type Era = 'legacy' | 'modern';

/**
 * True if a header `MCP-Protocol-Version` names a revision of the modern era, even an unknown one. Revisions are dates,
 * so they compare as text.
 */
export const namesModernRevision = (version: string | undefined): boolean =>
  version !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= modernRevisions[0];

/** The revision that is assumed where neither a header nor a session names one (2025-11-25, basic/transports). */
export const assumedRevision = '2025-03-26';

/** True if a client may name this revision in `MCP-Protocol-Version`. */
export const isServedRevision = (version: string): boolean => (legacyRevisions as readonly string[]).includes(version);

/**
 * True if streams begin with a priming event, an id with empty data (2025-11-25, basic/transports, "Resumability").
 * Clients of earlier revisions try to parse the empty data as JSON. Revisions are dates, so they compare as text.
 */
export const hasPrimingEvent = (version: string): boolean => version >= '2025-11-25';

/** True if a POST may carry an array of messages: only in 2025-03-26. */
export const allowsBatches = (version: string): boolean => version === '2025-03-26';
