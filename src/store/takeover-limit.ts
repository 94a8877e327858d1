/** A session that outlives this many owners in `takeoverWindowMs` may be what they die of; the next takeover ends it. */
export const maxTakeovers = 2;
/** The time in which takeovers after a lost owner are counted. */
export const takeoverWindowMs = 600_000;
