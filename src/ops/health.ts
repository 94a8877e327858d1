import type { HttpApp } from '../http/app.ts';
import type { Readiness } from '../session/readiness.ts';

/** What readiness depends on. */
export interface HealthOptions {
  readiness(): Readiness;
}

/**
 * `/healthz`: the process serves HTTP. `/readyz`: it takes new sessions; 503 while it drains, or has been without its Redis
 * for a whole lease, so that a load balancer sends them elsewhere. Before that it is only degraded: one hiccup of a Redis
 * that all instances share must not empty the load balancer. Neither says anything about sessions or names anything.
 */
export function addHealth(app: HttpApp, { readiness }: HealthOptions): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', (c) => {
    const status = readiness();
    return c.json({ status }, status === 'ready' || status === 'degraded' ? 200 : 503);
  });
}
