import { jsonResponse } from '../../http/respond.ts';
import type { App } from '../../http/router.ts';
import { type ReadinessReport, serverReadiness } from './readiness-report.ts';
import type { ServerHealth } from './server-health.ts';

/** The sources of the health endpoints. */
export interface HealthOptions {
  /** The current readiness of this instance. */
  readiness(): ReadinessReport;
  readonly servers: ServerHealth;
  /**
   * True if the response may list the servers and their health: for the operator, or for clients that may use them all.
   */
  readonly showsServers: boolean;
}

/**
 * Adds `/healthz` and `/readyz`. `/healthz` answers while the process serves HTTP. `/readyz` answers 503 while the
 * instance drains, or after its Redis has been unavailable for a whole lease, so that a load balancer sends new
 * sessions elsewhere. Before that the instance is only degraded: one hiccup of a Redis that all instances share must
 * not empty the load balancer. Neither endpoint says anything about sessions.
 */
export function addHealthRoutes(app: App, { readiness, servers, showsServers }: HealthOptions): void {
  app.get('/healthz', () => jsonResponse({ status: 'ok' }));
  app.get('/readyz', () => {
    const report = readiness();
    const { status } = report;
    const body = showsServers ? { ...report, servers: servers.statuses.map(serverReadiness) } : report;
    return jsonResponse(body, status === 'ready' || status === 'degraded' ? 200 : 503);
  });
}
