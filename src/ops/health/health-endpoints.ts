import { honoEndpoint, jsonResponse } from '../../http/hono-endpoint.ts';
import type { Endpoint } from '../../http/http-endpoint.ts';
import { readable } from '../../http/router.ts';
import { type ReadinessReport, serverReadiness } from './readiness-report.ts';
import type { ServerHealth } from './server-health.ts';

/** What readiness depends on. */
export interface HealthOptions {
  /** Of the instance as it is now. */
  readiness(): ReadinessReport;
  readonly servers: ServerHealth;
  /** Whoever asks may know which servers there are and how they do: the operator, or who may use them all anyway. */
  readonly showsServers: boolean;
}

/**
 * `/healthz`: the process serves HTTP. `/readyz`: it takes new sessions; 503 while it drains, or has been without its Redis
 * for a whole lease, so that a load balancer sends them elsewhere. Before that it is only degraded: one hiccup of a Redis
 * that all instances share must not empty the load balancer. Neither says anything about sessions.
 */
export function healthEndpoints({ readiness, servers, showsServers }: HealthOptions): ReadonlyMap<string, Endpoint> {
  const answer = readable(
    honoEndpoint('request', (app) => {
      app.get('/healthz', () => jsonResponse({ status: 'ok' }));
      app.get('/readyz', () => {
        const report = readiness();
        const { status } = report;
        const body = showsServers ? { ...report, servers: servers.statuses.map(serverReadiness) } : report;
        return jsonResponse(body, status === 'ready' || status === 'degraded' ? 200 : 503);
      });
    }),
  );
  return new Map([
    ['/healthz', answer],
    ['/readyz', answer],
  ]);
}
