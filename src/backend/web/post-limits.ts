// How long POSTs to one server hold each other up, and how many are under way. Requests go beside each other, as clients send them.

/** Each request may keep a connection until its call is done: no more than this, as a session has calls by default (P8). */
export const maxOpenRequests = 256;

/** Beside them: the stream of the server, a message that is no request, and streams that are resumed meanwhile. */
export const maxConnections = maxOpenRequests + 8;

/** A server that does not accept a notification or response for so long holds up the messages after it no longer. */
export const maxHoldMs = 5_000;

/**
 * So long a cancellation waits for the head of the answer to what it cancels. On two connections it could arrive first; a
 * server that holds the head back until the call is done has read the request by then.
 */
export const maxOvertakeMs = 250;

/** So long a server may still answer a request that was cancelled; then its connection is cut. */
export const abandonAfterMs = 30_000;
