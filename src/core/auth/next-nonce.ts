import type { IncomingMessage } from 'node:http';

const nextNonces = new WeakMap<IncomingMessage, string>();

/** Sets the nonce for the client's next proof, which the response to this request carries. */
export const setNextNonce = (incoming: IncomingMessage, nonce: string): void => {
  nextNonces.set(incoming, nonce);
};

/** Returns the nonce that the response to a request must carry in `DPoP-Nonce` (RFC 9449, section 8.1), if any. */
export const nextNonceOf = (incoming: IncomingMessage): string | undefined => nextNonces.get(incoming);
