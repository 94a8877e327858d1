import type { HttpApp } from '../http/app.ts';

/** What readiness depends on. */
export interface HealthOptions {
  /** True once the gateway is shutting down and takes no new sessions. */
  isDraining(): boolean;
}

/**
 * `/healthz`: the process serves HTTP. `/readyz`: it takes new sessions; 503 while it drains, so that a load balancer
 * sends them elsewhere. Neither says anything about sessions or names anything.
 */
export function addHealth(app: HttpApp, { isDraining }: HealthOptions): void {
  app.get('/healthz', (c) => c.json({ status: 'ok' }));
  app.get('/readyz', (c) => (isDraining() ? c.json({ status: 'draining' }, 503) : c.json({ status: 'ready' })));
}
