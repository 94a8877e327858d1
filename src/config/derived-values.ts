import type { GatewayOptions } from './options/options.ts';
import { largestMessageBytes, mebibyte, minute, second } from './units.ts';

/** An event of 8 KiB is larger than almost all; a log full of smaller ones has room for a thousand of them. */
const bytesOfEvent = 8 * 1024;

/** Values that follow from options. Nobody could set them without knowing the code. */
export type DerivedValues = ReturnType<typeof deriveValues>;

/** Derives the values of a configuration. */
export function deriveValues({ cluster: { leaseMs }, limits, replay, sse, timeouts }: GatewayOptions) {
  return {
    /** A lease is renewed three times before it expires, so that two renewals can fail. */
    leaseRenewMs: Math.max(10, Math.floor(leaseMs / 3)),
    /** Before a lease expires, the instance sends only data that is in the log for this long. */
    leaseMarginMs: Math.max(1, Math.floor(leaseMs / 6)),
    /** A request waits for Redis as long as its session has an owner, and a client for half a minute. */
    storeWaitMs: Math.min(30 * second, leaseMs),
    /** A Redis that answers later is unreachable. Six answers fit into a lease, and a person waits for one. */
    redisTimeoutMs: Math.min(second, Math.max(10, Math.floor(leaseMs / 6))),
    /**
     * Redis keeps a session without an owner for as long as the session may be idle and its events last. An hour is the
     * time in which somebody starts a gateway again.
     */
    recordTtlMs: Math.max(60 * minute, timeouts.sessionIdleMs, replay.maxAgeMs),
    /** One event leaves room for others, which a client may still miss. */
    maxEventBytes: Math.min(largestMessageBytes, Math.max(1, Math.floor(replay.maxSizeBytes / 2))),
    /** For a server that does not read. The largest message of a client always fits. */
    maxQueuedBytes: Math.max(16 * mebibyte, limits.request.bodyBytes),
    /** Sessions of a replaced server end like the longest of their requests, or within an hour. */
    replacedServerMs: Math.min(60 * minute, timeouts.requestTotalMs),
    /**
     * A session has a stream, a few requests and their retries; an HTTP/1.1 connection carries one at a time. Clients that
     * are refused a session need connections, too.
     */
    maxConnections: Math.max(1_000, 10 * limits.total.sessions),
    /**
     * What each log keeps of a session. An event costs memory of its own, however small it is, so their number follows
     * from the size.
     */
    logLimits: {
      maxEvents: Math.max(1, Math.floor(replay.maxSizeBytes / bytesOfEvent)),
      maxBytes: replay.maxSizeBytes,
      maxAgeMs: replay.maxAgeMs,
    },
    /** Each level of nesting costs memory while a message is read, whatever its size (P8). No known message comes near. */
    maxDepth: 100,
    /** A client that closed its GET stream may come back within this time. Then its process is freed for others. */
    abandonedMs: 5 * minute,
    /** What several clients share serves as many requests as sixteen busy sessions send. */
    maxSharedCalls: 16 * limits.session.requests,
    /** A proxy closes a silent request as it closes a silent stream, so a comment must come as early. */
    commitAfterMs: sse.heartbeatMs,
    /** A client of HTTP+SSE sends `initialize` right after its stream has opened. */
    sseOpenMs: Math.min(minute, Math.ceil(timeouts.sessionIdleMs / 2)),
    /** A client that sends its body this slowly holds a connection for nothing (slowloris). */
    bodyTimeoutMs: Math.min(30 * second, timeouts.requestIdleMs),
  };
}
