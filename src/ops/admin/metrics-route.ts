import type { HttpApp } from '../../http/app.ts';
import type { Exposition } from '../metrics/exposition.ts';

/** `/metrics`, in Prometheus' text format. */
export function addMetrics(app: HttpApp, load: () => Promise<Exposition>): void {
  app.get('/metrics', async (c) => {
    const exposition = await load();
    return c.text(await exposition.render(), 200, { 'content-type': exposition.contentType });
  });
}
