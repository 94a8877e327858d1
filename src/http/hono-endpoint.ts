import type { Hono } from 'hono';
import { detach, type Seam } from '../util/boundary.ts';
import type { Endpoint } from './http-context.ts';

/**
 * Creates an endpoint whose responses are complete at once: health, metadata, metrics. A hono application answers it.
 * Endpoints that stream write to the Node.js response themselves (docs/decisions/0003).
 *
 * The router has matched the exact path and the method before, so hono never gets any other (docs/decisions/0064). The
 * first request loads hono, because no start needs it (docs/decisions/0085).
 * @param seam where a fault of a handler is reported; its request is answered with `internal`
 */
export function honoEndpoint(seam: Seam, define: (app: Hono) => void): Endpoint {
  let created: Promise<Endpoint> | undefined;
  const create = async (): Promise<Endpoint> => (await import('./hono-listener.ts')).createHonoListener(seam, define);
  return (context) => {
    created ??= create();
    const answered = created.then((endpoint) => endpoint(context));
    detach(seam, answered, () => context.fail());
  };
}
