type Deliver = (...message: unknown[]) => void;

/**
 * Makes a transport deliver one message per turn. The official clients handle a notification slightly later than a
 * response. So the HTTP+SSE and WebSocket transports lose progress that they read in one piece with the response. A
 * loaded machine often reads separate writes in one piece.
 */
export function deliverOneByOne(transport: object): void {
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
