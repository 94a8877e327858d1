import { textResponse } from '../../http/respond.ts';
import type { App } from '../../http/router.ts';
import type { Exposition } from '../metrics/exposition.ts';

/** Adds `/metrics`, in Prometheus' text format. */
export function addMetricsRoute(app: App, load: () => Promise<Exposition>): void {
  app.get('/metrics', async () => {
    const exposition = await load();
    return textResponse(await exposition.render(), 200, { 'content-type': exposition.contentType });
  });
}
