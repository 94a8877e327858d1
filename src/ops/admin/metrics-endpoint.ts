import { detach } from '../../boundary.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import { endAsInternal } from '../../http/respond.ts';
import { readable } from '../../http/router.ts';
import type { Exposition } from '../metrics/exposition.ts';

/** `/metrics`, in Prometheus' text format. */
export function createMetricsEndpoint(load: () => Promise<Exposition>): Endpoint {
  return readable((_incoming, outgoing) => {
    const show = async (): Promise<void> => {
      const exposition = await load();
      const text = await exposition.render();
      const length = Buffer.byteLength(text);
      const type = { 'content-type': exposition.contentType, 'x-content-type-options': 'nosniff' };
      outgoing.writeHead(200, { ...type, 'content-length': length }).end(text);
    };
    detach('admin', show(), () => endAsInternal(outgoing));
  });
}
