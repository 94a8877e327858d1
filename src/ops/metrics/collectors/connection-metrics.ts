import type { ConnectionObserver } from '../../../http/connection-observer.ts';
import type { Metrics } from '../metrics.ts';
import type { Tally } from '../series.ts';

/** Counts the open streams and WebSockets of a server's clients. */
export const countConnections = (metrics: Metrics, server: string): ConnectionObserver => ({
  onStream: countOpen(metrics.tallies('streams').of(server)),
  onWebSocket: countOpen(metrics.tallies('webSockets').of(server)),
});

const countOpen = (open: Tally) => () => {
  open.value += 1;
  return (): void => {
    open.value -= 1;
  };
};
