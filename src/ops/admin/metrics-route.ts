import type { HttpApp } from '../../http/app.ts';
import type { Exposition } from '../metrics/exposition.ts';

/** `/metrics`, in Prometheus' text format. */
export function addMetrics(app: HttpApp, exposition: Exposition): void {
  app.get('/metrics', async (c) => c.text(await exposition.render(), 200, { 'content-type': exposition.contentType }));
}
