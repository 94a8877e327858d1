import type { Logger } from 'pino';
import { createOriginRules, isLoopback } from '../../auth/origin-rules.ts';
import { hasAuthentication } from '../../config/access/authentication-config.ts';
import type { GatewayConfig } from '../../config/config.ts';
import type { ServerCertificate } from '../../http/http-server.ts';
import { type AdminServer, startAdminServer } from '../../ops/admin/admin-server.ts';
import type { StatusPage } from '../../ops/admin/console-hook.ts';
import { createMetricsEndpoint } from '../../ops/admin/metrics-endpoint.ts';
import { type HealthOptions, healthEndpoints } from '../../ops/health/health-endpoints.ts';
import { type InstanceState, watchInstance } from '../../ops/metrics/collectors/instance-metrics.ts';
import type { Exposition } from '../../ops/metrics/exposition.ts';
import type { Metrics } from '../../ops/metrics/metrics.ts';
import { docsPage } from '../../util/docs-page.ts';
import { explainListenFailure, type PortOptions } from '../addresses/listen.ts';
import { publicBaseUrl } from '../addresses/public-base-url.ts';

/** The parts of the operator port. */
export interface AdminParts extends HealthOptions {
  readonly config: GatewayConfig;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly state: InstanceState;
  /** Undefined without a console. */
  readonly page: StatusPage | undefined;
  /** The certificate of the gateway, if it has one. */
  readonly certificate: ServerCertificate | undefined;
}

const operatorPort: PortOptions = {
  host: 'listen.adminHost',
  port: 'listen.adminPort',
  zeroMeans: 'disables the operator port',
};

/**
 * Opens the operator port. Returns undefined if it cannot listen, and logs the remedy: a second gateway on a machine
 * must start even though the default port is in use.
 */
export async function startAdmin({
  config,
  logger,
  metrics,
  state,
  page,
  certificate,
  ...health
}: AdminParts): Promise<AdminServer | undefined> {
  const { adminHost: host, adminPort: port } = config.listen;
  watchInstance(metrics, state);
  let exposition: Promise<Exposition> | undefined;
  const loadExposition = (): Promise<Exposition> => {
    // Loaded at the first scrape, because loading is a large part of a start. It measures the event loop from then on.
    exposition ??= import('../../ops/metrics/exposition.ts').then(({ createExposition }) => createExposition(metrics));
    return exposition;
  };
  const endpoints = new Map([...healthEndpoints(health), ['/metrics', createMetricsEndpoint(loadExposition)] as const]);
  try {
    // On loopback there is no network to protect, and the certificate is for another name.
    const own = isLoopback(host) ? undefined : certificate;
    // An allowed host with a port has the port for clients.
    const allowHost = isLoopback(host) ? [] : config.listen.allowedHosts.map((name) => name.replace(/:\d+$/, ''));
    const started = await startAdminServer({
      host,
      port,
      allowHost: config.listen.allowedHosts,
      certificate: own,
      find: (path) => endpoints.get(path) ?? page?.at(path),
      isPagePath: (path) => page?.has(path) ?? false,
    });
    const rules = createOriginRules({ host, allowOrigin: [], allowHost });
    const { url } = publicBaseUrl({
      host,
      port: Number(new URL(started.url).port),
      allowHost,
      rules,
      certificate: own,
    });
    const admin = { ...started, url };
    const statusPage = page?.urlAt(url);
    logger.info(
      { url: `${url}/metrics`, statusPage },
      statusPage === undefined ? 'metrics ready' : 'metrics and status page ready',
    );
    warnOfExposure(config, certificate !== undefined, logger);
    return admin;
  } catch (cause) {
    logger.error(
      { host, port, detail: explainListenFailure(cause, { host, port }, operatorPort) },
      'cannot open the operator port: no metrics and no status page',
    );
    return undefined;
  }
}

function warnOfExposure(config: GatewayConfig, hasTls: boolean, logger: Logger): void {
  const { adminHost: host, adminPort: port } = config.listen;
  if (isLoopback(host)) return;
  if (hasAuthentication(config) && !hasTls)
    logger.warn(
      {
        host,
        port,
        detail: `Set --tls-cert and --tls-key (the operator port uses them too), or set --listen.adminHost to a loopback address and use a tunnel. See ${docsPage('status-page.md')}`,
      },
      'the operator port has no TLS: keys of operators can be read on the network',
    );
  const detail = `The metrics contain server names and usage numbers, but no ids, users or content. Allow only your monitoring system to reach this address. See ${docsPage('reference/metrics.md')}`;
  logger.warn({ host, port, detail }, 'anyone who can reach the operator port can read the metrics');
}
