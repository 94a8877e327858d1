import type { SdkTransport } from './sdk-transports.ts';

type Deliver = (...message: unknown[]) => void;

/**
 * Makes a transport hand its client one message a turn. The official clients look at a notification a moment after it
 * came, and at a response at once: what the transports of HTTP+SSE and of WebSocket read in one piece loses the progress of
 * a call to its response. A machine under load reads in one piece what was written apart.
 */
export function deliverOneByOne(transport: SdkTransport): void {
  let deliver: Deliver | undefined;
  let last = Promise.resolve();
  const later: Deliver = (...message) => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve))).then(() => deliver?.(...message));
  };
  Object.defineProperty(transport, 'onmessage', {
    get: () => deliver && later,
    set(listener: Deliver | undefined) {
      deliver = listener;
    },
  });
}
