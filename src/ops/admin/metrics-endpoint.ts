import type { Endpoint } from '../../http/endpoint.ts';
import { answering, readable } from '../../http/router.ts';
import type { Exposition } from '../metrics/exposition.ts';

/**
 * `/metrics`, in Prometheus' text format.
 * @param onFailed told why a scrape got none
 */
export function createMetricsEndpoint(load: () => Promise<Exposition>, onFailed: (cause: unknown) => void): Endpoint {
  return readable((_incoming, outgoing) => {
    const show = async (): Promise<void> => {
      const exposition = await load();
      const text = await exposition.render();
      const length = Buffer.byteLength(text);
      outgoing.writeHead(200, { 'content-type': exposition.contentType, 'content-length': length }).end(text);
    };
    answering(outgoing, show(), onFailed);
  });
}
