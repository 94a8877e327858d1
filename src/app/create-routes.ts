import type { CredentialWatch } from '../auth/credential-watch.ts';
import { metadataPathsOf, rootMetadataPath } from '../auth/oauth/protected-resources.ts';
import type { OriginRules } from '../auth/origin-rules.ts';
import type { CallTelemetry } from '../call/call-events.ts';
import type { GatewayConfig } from '../config/config.ts';
import { endpointPathsOf } from '../config/endpoint-paths.ts';
import type { ConnectionMeters } from '../http/connection-events.ts';
import { LegacyMessagesEndpoint, LegacySseStream } from '../http/endpoints/legacy-sse.ts';
import { createMetadataEndpoint } from '../http/endpoints/oauth-metadata.ts';
import { StreamableHttpEndpoint } from '../http/endpoints/streamable-http.ts';
import { createRelayedMetadataEndpoint } from '../http/endpoints/upstream-metadata.ts';
import { webSocketOnly } from '../http/endpoints/websocket/websocket.ts';
import type { Endpoint } from '../http/http-context.ts';
import { type AdmissionOptions, behindAdmission } from '../http/pipeline/admission.ts';
import type { RequestTracing } from '../http/pipeline/trace-requests.ts';
import { MessagesEndpoint, publicPrefixOf } from '../http/replies/messages-endpoint.ts';
import { type HealthOptions, healthEndpoints } from '../ops/health/health-endpoints.ts';
import type { Quotas } from '../quota/quotas.ts';
import type { Sessions } from '../registry/sessions.ts';
import type { AccessTo } from './access/create-access.ts';
import type { StateSealing } from './access/create-state-sealing.ts';
import { resourcePathsOf } from './access/upstream-access.ts';
import { createCardEndpoints } from './cards/server-cards.ts';
import type { ServedServer } from './servers/served-server.ts';

/** The parts that the endpoints of all servers share. */
export interface RouteParts {
  readonly sessions: Sessions;
  readonly stateSealing: StateSealing;
  readonly originRules: OriginRules;
  readonly identityHeaders: readonly string[];
  readonly quotas: Quotas;
  readonly watch: CredentialWatch;
  readonly calls: CallTelemetry | undefined;
  readonly emit: AdmissionOptions['emit'];
  readonly addressOf: AdmissionOptions['addressOf'];
  readonly isOfProxy: AdmissionOptions['isOfProxy'];
  readonly tracePosts: RequestTracing | undefined;
  connectionMetersOf(server: string): ConnectionMeters | undefined;
  readonly accessTo: AccessTo;
  readonly health: HealthOptions;
}

/** The endpoints of a gateway for HTTP and WebSocket. */
export interface Routes {
  /** The endpoints by exact path. Any other path gets a 404. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly onWebSocket: ReadonlyMap<string, AdmissionOptions>;
}

/**
 * Creates the routes of these servers.
 * @param config the current configuration
 * @param served the servers; the first of two servers with the same path gets it
 */
export function createRoutes(config: GatewayConfig, served: readonly ServedServer[], parts: RouteParts): Routes {
  const { sessions, stateSealing, accessTo, health, connectionMetersOf, ...admission } = parts;
  const { publicUrl } = config.listen;
  const endpoints = new Map<string, Endpoint>();
  const onWebSocket = new Map<string, AdmissionOptions>();
  const configs = served.map((each) => each.config);
  const access = accessTo(config, configs);
  for (const { config: own, server, modern, groups, lists } of served) {
    const { sessionless } = own;
    const { marks } = stateSealing;
    const meters = connectionMetersOf(own.name);
    const options = {
      ...config.timeouts,
      ...config.sse,
      ...config.derived,
      maxBodyBytes: config.limits.request.bodyBytes,
      server,
      sessions,
      modern,
      groups,
      lists,
      sessionless,
      marks,
      meters,
      ...admission,
      ...access.of(own),
    };
    const { passthrough } = options;
    // The gateway itself answers these requests with a stream, or a 101, before the server sees anything.
    const checked = { ...options, ...(passthrough && { authenticate: passthrough.authenticateChecked }) };
    const endpoint = behindAdmission(options, new StreamableHttpEndpoint(options));
    for (const { mcp, ws, legacySse } of endpointPathsOf(config, own)) {
      if (endpoints.has(mcp)) continue;
      endpoints.set(mcp, endpoint);
      if (ws !== undefined) {
        endpoints.set(ws, webSocketOnly);
        onWebSocket.set(ws, checked);
      }
      if (legacySse === undefined) continue;
      const { stream: streamPath, messages: messagesPath } = legacySse;
      const named = new MessagesEndpoint({ streamPath, messagesPath, publicUrl });
      const legacySseOptions = { ...checked, endpoint: named };
      const messagesEndpoint = behindAdmission(checked, new LegacyMessagesEndpoint(legacySseOptions));
      endpoints.set(streamPath, behindAdmission(checked, new LegacySseStream(legacySseOptions)));
      endpoints.set(messagesPath, messagesEndpoint);
      // A client that reaches the gateway directly, or through a proxy that keeps the path, posts to the public path.
      if (publicUrl !== undefined) endpoints.set(publicPrefixOf(publicUrl) + messagesPath, messagesEndpoint);
    }
  }
  const addUnlessTaken = (path: string, endpoint: Endpoint): void => {
    if (!endpoints.has(path)) endpoints.set(path, endpoint);
  };
  for (const { config: own } of served) {
    const { passthrough } = access.of(own);
    if (passthrough === undefined) continue;
    for (const resourcePath of new Set(resourcePathsOf(config, own).values())) {
      const { originRules } = parts;
      const endpoint = createRelayedMetadataEndpoint({ passthrough, resourcePath, originRules });
      for (const path of metadataPathsOf(resourcePath, publicUrl)) addUnlessTaken(path, endpoint);
      if (config.servers.length === 1) addUnlessTaken(rootMetadataPath, endpoint);
    }
  }
  for (const [path, endpoint] of createCardEndpoints(config, served, parts.originRules)) addUnlessTaken(path, endpoint);
  for (const [path, document] of access.metadata) addUnlessTaken(path, createMetadataEndpoint(document));
  for (const [path, endpoint] of healthEndpoints(health)) addUnlessTaken(path, endpoint);
  return { endpoints, onWebSocket };
}
