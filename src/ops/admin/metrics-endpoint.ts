import { honoEndpoint } from '../../http/hono-endpoint.ts';
import type { Endpoint } from '../../http/http-context.ts';
import { textResponse } from '../../http/respond.ts';
import { readable } from '../../http/router.ts';
import type { Exposition } from '../metrics/exposition.ts';

/** Serves `/metrics` in Prometheus' text format. */
export function createMetricsEndpoint(load: () => Promise<Exposition>): Endpoint {
  return readable(
    honoEndpoint('admin', (app) => {
      app.get('*', async () => {
        const exposition = await load();
        const text = await exposition.render();
        return textResponse(text, 200, { 'content-type': exposition.contentType });
      });
    }),
  );
}
