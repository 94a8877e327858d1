import type { GatewayConfig } from '../config/config.ts';
import { endpointPathsOf } from '../config/endpoint-paths.ts';
import { parseDurationMs } from '../config/units.ts';
import type { CredentialWatch } from '../core/auth/credential-watch.ts';
import type { OriginRules } from '../core/auth/origin-rules.ts';
import type { CallTelemetry } from '../core/call/call-events.ts';
import type { ConnectionMeters } from '../core/http/connection-events.ts';
import { StreamableHttpEndpoint } from '../core/http/endpoints/streamable-http.ts';
import { type AdmissionOptions, behindAdmission } from '../core/http/pipeline/admission.ts';
import type { RequestTracing } from '../core/http/pipeline/traced-messages.ts';
import { asHandler, Routes } from '../core/http/router.ts';
import { addHealthRoutes, type HealthOptions } from '../core/ops/health/health-endpoints.ts';
import type { Quotas } from '../core/quota/quotas.ts';
import type { Sessions } from '../core/registry/sessions.ts';
import { ModernEndpoint } from '../features/eras/endpoint/modern.ts';
import { SessionlessEndpoint } from '../features/eras/endpoint/sessionless.ts';
import { LegacyMessagesEndpoint, LegacySseStream } from '../features/legacy-sse/legacy-sse.ts';
import { MessagesEndpoint, publicPrefixOf } from '../features/legacy-sse/messages-endpoint.ts';
import { addMetadataRoute } from '../features/oauth/oauth-metadata.ts';
import { metadataPathsOf, rootMetadataPath } from '../features/oauth/tokens/protected-resources.ts';
import { addRelayedMetadataRoute } from '../features/oauth/upstream/upstream-metadata.ts';
import type { GatewayTasks } from '../features/tasks/gateway-tasks.ts';
import { ModernTasks } from '../features/tasks/modern-tasks.ts';
import { webSocketOnly } from '../features/websocket/endpoint/websocket.ts';
import type { AccessTo } from './access/create-access.ts';
import type { StateSealing } from './access/create-state-sealing.ts';
import { resourcePathsOf } from './access/upstream-access.ts';
import { addCardRoutes } from './cards/server-cards.ts';
import type { ServedServer } from './servers/served-server.ts';

/** The parts that the endpoints of all servers share. */
export interface RouteParts {
  readonly sessions: Sessions;
  readonly stateSealing: StateSealing;
  readonly originRules: OriginRules;
  readonly identityHeaders: readonly string[];
  readonly quotas: Quotas;
  readonly watch: CredentialWatch;
  readonly tasks: GatewayTasks;
  readonly calls: CallTelemetry | undefined;
  readonly emit: AdmissionOptions['emit'];
  readonly addressOf: AdmissionOptions['addressOf'];
  readonly isOfProxy: AdmissionOptions['isOfProxy'];
  readonly tracePosts: RequestTracing | undefined;
  connectionMetersOf(server: string): ConnectionMeters | undefined;
  readonly accessTo: AccessTo;
  readonly health: HealthOptions;
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
export function createRoutes(config: GatewayConfig, served: readonly ServedServer[], parts: RouteParts): GatewayRoutes {
  const { sessions, stateSealing, accessTo, health, connectionMetersOf, tasks, ...admission } = parts;
  const { publicUrl } = config.listen;
  const routes = new Routes('request', 'no_such_path');
  const { app } = routes;
  const onWebSocket = new Map<string, AdmissionOptions>();
  const configs = served.map((each) => each.config);
  const access = accessTo(config, configs);
  for (const { config: own, server, modern, groups, lists } of served) {
    const { marks } = stateSealing;
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
      modern,
      groups,
      lists,
      marks,
      meters,
      tasks: afterMs === undefined ? undefined : new ModernTasks({ tasks, afterMs, marks, server: own.name }),
      ...admission,
      ...access.of(own),
    };
    const { passthrough } = options;
    // The gateway itself answers these requests with a stream, or a 101, before the server sees anything.
    const checked = { ...options, ...(passthrough && { authenticate: passthrough.authenticateChecked }) };
    const endpoint = asHandler(
      behindAdmission(
        options,
        new StreamableHttpEndpoint({
          ...options,
          modern: new ModernEndpoint(options),
          sessionless: own.sessionless === 'serve' ? new SessionlessEndpoint(options) : undefined,
        }),
      ),
    );
    for (const { mcp, ws, legacySse } of endpointPathsOf(config, own)) {
      if (routes.has(mcp)) continue;
      app.all(mcp, endpoint);
      if (ws !== undefined) {
        app.all(ws, asHandler(webSocketOnly));
        onWebSocket.set(ws, checked);
      }
      if (legacySse === undefined) continue;
      const { stream: streamPath, messages: messagesPath } = legacySse;
      const named = new MessagesEndpoint({ streamPath, messagesPath, publicUrl });
      const legacySseOptions = { ...checked, endpoint: named };
      const messagesEndpoint = asHandler(behindAdmission(checked, new LegacyMessagesEndpoint(legacySseOptions)));
      app.all(streamPath, asHandler(behindAdmission(checked, new LegacySseStream(legacySseOptions))));
      app.all(messagesPath, messagesEndpoint);
      // A client that reaches the gateway directly, or through a proxy that keeps the path, posts to the public path.
      if (publicUrl !== undefined) app.all(publicPrefixOf(publicUrl) + messagesPath, messagesEndpoint);
    }
  }
  for (const { config: own } of served) {
    const { passthrough } = access.of(own);
    if (passthrough === undefined) continue;
    for (const resourcePath of new Set(resourcePathsOf(config, own).values())) {
      const { originRules } = parts;
      const rootPath = config.servers.length === 1 ? [rootMetadataPath] : [];
      for (const path of [...metadataPathsOf(resourcePath, publicUrl), ...rootPath])
        if (!routes.has(path)) addRelayedMetadataRoute(app, path, { passthrough, resourcePath, originRules });
    }
  }
  addCardRoutes(routes, config, served, parts.originRules);
  for (const [path, document] of access.metadata) if (!routes.has(path)) addMetadataRoute(app, path, document);
  addHealthRoutes(app, health);
  return { http: routes, onWebSocket };
}
