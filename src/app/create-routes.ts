import type { GatewayConfig } from '../config/config.ts';
import { endpointPathsOf, resourcePathsOf } from '../config/endpoint-paths.ts';
import { gatewayOptions } from '../config/options/options.ts';
import { parseDurationMs } from '../config/units.ts';
import type { CredentialWatch } from '../core/auth/credential-watch.ts';
import type { OriginRules } from '../core/auth/origin-rules.ts';
import type { CallTelemetry } from '../core/call/call-events.ts';
import type { ConnectionMeters } from '../core/http/connection-events.ts';
import { StreamableHttpEndpoint } from '../core/http/endpoints/streamable-http.ts';
import { type AdmissionOptions, behindAdmission } from '../core/http/pipeline/admission.ts';
import type { RequestTracing } from '../core/http/pipeline/traced-messages.ts';
import { asHandler, Routes } from '../core/http/router.ts';
import type { CredentialMarks } from '../core/keys/credential-marks.ts';
import { addHealthRoutes, type HealthOptions } from '../core/ops/health/health-endpoints.ts';
import type { Quotas } from '../core/quota/quotas.ts';
import type { Sessions } from '../core/registry/sessions.ts';
import type { ClientAccess } from './access/create-access.ts';
import type { GatewayTaskSet } from './features/eras.ts';
import type { Features } from './features/gateway-features.ts';
import type { ServedServer } from './servers/served-server.ts';

/** The parts that the endpoints of all servers share. */
export interface RouteParts {
  readonly sessions: Sessions;
  readonly marks: CredentialMarks;
  readonly originRules: OriginRules;
  readonly identityHeaders: readonly string[];
  readonly quotas: Quotas;
  readonly watch: CredentialWatch;
  readonly tasks: GatewayTaskSet | undefined;
  /** True if several instances can share the store. */
  readonly isShared: boolean;
  readonly calls: CallTelemetry | undefined;
  readonly emit: AdmissionOptions['emit'];
  readonly addressOf: AdmissionOptions['addressOf'];
  readonly isOfProxy: AdmissionOptions['isOfProxy'];
  readonly tracePosts: RequestTracing | undefined;
  connectionMetersOf(server: string): ConnectionMeters | undefined;
  readonly access: Pick<ClientAccess, 'to'>;
  readonly health: HealthOptions;
}

/** An answer names no more endpoints. */
const maxTold = 10;

/**
 * The paths of endpoints that a client at a wrong path is told: only what anybody can know. The usual path is in every
 * example. The names of servers are told where `/readyz` tells them. A path that the operator has chosen is not told: it
 * may be meant for few.
 */
function publicPaths(config: GatewayConfig, showsServers: boolean): readonly string[] {
  const { servers, listen } = config;
  if (listen.path !== gatewayOptions.listen.path.default) return [];
  if (servers.length > 1 && (!showsServers || servers.length > maxTold)) return [];
  return servers.map((server) => endpointPathsOf(config, server)[0].mcp);
}

/** The endpoints of a gateway. */
export interface GatewayRoutes {
  readonly http: Routes;
  /** The options of the WebSocket endpoints, by exact path. */
  readonly onWebSocket: ReadonlyMap<string, AdmissionOptions>;
}

/**
 * Creates the routes of these servers.
 * @param config the current configuration
 * @param served the servers; the first of two servers with the same path gets it
 */
export function createRoutes(
  config: GatewayConfig,
  features: Features,
  served: readonly ServedServer[],
  parts: RouteParts,
): GatewayRoutes {
  const { sessions, marks, access: accessOfAll, health, connectionMetersOf, tasks, isShared, ...admission } = parts;
  const { publicUrl } = config.listen;
  const routes = new Routes('request', 'no_such_path', publicPaths(config, health.showsServers));
  const { app } = routes;
  const onWebSocket = new Map<string, AdmissionOptions>();
  const configs = served.map((each) => each.config);
  const access = accessOfAll.to(config, configs);
  for (const { config: own, server, eras } of served) {
    const meters = connectionMetersOf(own.name);
    const afterMs = parseDurationMs(own.tasks.after);
    const options = {
      ...config.timeouts,
      ...config.sse,
      ...config.calls,
      ...config.derived,
      maxBodyBytes: config.limits.request.bodyBytes,
      server,
      sessions,
      marks,
      meters,
      tasks:
        afterMs === undefined
          ? undefined
          : tasks?.of({
              ...config.timeouts,
              ...config.sse,
              ...config.derived,
              afterMs,
              marks,
              server: own.name,
              reruns: server.reruns,
              isLocalToInstance: isShared && own.address === undefined,
            }),
      ...admission,
      ...access.of(own),
    };
    const { passthrough } = options;
    // The gateway itself answers these requests with a stream, or a 101, before the server sees anything.
    const checked = { ...options, ...(passthrough && { authenticate: passthrough.authenticateChecked }) };
    const endpoint = asHandler(
      behindAdmission(options, new StreamableHttpEndpoint({ ...options, ...eras?.endpoints(options) })),
    );
    for (const { mcp, ws, legacySse } of endpointPathsOf(config, own)) {
      if (routes.has(mcp)) continue;
      app.all(mcp, endpoint);
      if (ws !== undefined && features.webSocket !== undefined) {
        app.all(ws, asHandler(features.webSocket.answerWithoutUpgrade));
        onWebSocket.set(ws, checked);
      }
      if (legacySse !== undefined)
        features.legacySse?.addRoutes(
          app,
          { streamPath: legacySse.stream, messagesPath: legacySse.messages, publicUrl },
          checked,
        );
    }
  }
  for (const { config: own } of served) {
    const { passthrough: login } = access.of(own);
    if (login === undefined) continue;
    const isOnly = config.servers.length === 1;
    for (const resourcePath of new Set(resourcePathsOf(config, own).values()))
      features.oauth?.addRelayedMetadata(routes, {
        login,
        resourcePath,
        publicUrl,
        isOnly,
        originRules: parts.originRules,
      });
  }
  const cardServers = served.map(({ config: own, server, eras }) => ({ config: own, server, era: eras?.era }));
  features.cards?.addRoutes(routes, config, cardServers, parts.originRules);
  for (const [path, document] of access.metadata)
    if (!routes.has(path)) features.oauth?.addMetadataRoute(app, path, document);
  addHealthRoutes(app, health);
  return { http: routes, onWebSocket };
}
