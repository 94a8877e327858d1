// src/config/tree: the tree of the configuration, its short names and its JSON Schema.

/**
 * The place of each gateway option in the configuration tree. The path is the key in the file (`timeouts.sessionIdle`),
 * the flag (`--timeouts.sessionIdle`) and the variable (`GANGWAY_TIMEOUTS_SESSION_IDLE`). Options below `advanced`
 * rarely need a change.
 */
export const gatewayPlaces = {
  host: 'listen.host',
  port: 'listen.port',
  path: 'listen.path',
  publicUrl: 'listen.publicUrl',
  adminPort: 'listen.adminPort',
  adminHost: 'listen.adminHost',
  allowOrigin: 'listen.allowedOrigins',
  allowHost: 'listen.allowedHosts',
  tlsCert: 'listen.tls.cert',
  tlsKey: 'listen.tls.key',
  requireAuth: 'auth.required',
  apiKeysFile: 'auth.apiKeysFile',
  authIssuer: 'auth.oauth.issuers',
  authAudience: 'auth.oauth.audiences',
  impliedScopes: 'auth.impliedScopes',
  proxyIdentityHeader: 'auth.proxy.userHeader',
  trustedProxy: 'auth.proxy.addresses',
  principalSessions: 'limits.user.sessions',
  principalRequestsPerS: 'limits.user.requestsPerSecond',
  maxCalls: 'limits.session.requests',
  maxBodyBytes: 'limits.request.body',
  maxSessions: 'limits.total.sessions',
  maxConnections: 'limits.total.connections',
  sessionIdleMs: 'timeouts.sessionIdle',
  requestIdleMs: 'timeouts.requestIdle',
  requestMaxMs: 'timeouts.requestTotal',
  drainMs: 'timeouts.drain',
  keepAliveMs: 'sse.heartbeat',
  logMaxBytes: 'replay.maxSize',
  logMaxAgeMs: 'replay.maxAge',
  store: 'replay.store',
  redis: 'cluster.redis',
  redisPrefix: 'cluster.prefix',
  leaseMs: 'cluster.lease',
  linkHost: 'cluster.link.host',
  linkPort: 'cluster.link.port',
  stateKey: 'cluster.stateKeys',
  logLevel: 'observe.logLevel',
  logFormat: 'observe.logFormat',
  audit: 'observe.audit',
  inspect: 'observe.showContents',
  open: 'observe.openPage',
  ssePath: 'advanced.paths.sse',
  messagesPath: 'advanced.paths.messages',
  wsPath: 'advanced.paths.ws',
  allowClearKeys: 'advanced.auth.allowClearKeys',
  proxyScopesHeader: 'advanced.auth.proxyScopesHeader',
  authAlgorithms: 'advanced.oauth.algorithms',
  authDpop: 'advanced.oauth.dpop',
  authClientCertificates: 'advanced.oauth.clientCertificates',
  authClientCa: 'advanced.oauth.clientCa',
  authClockSkewMs: 'advanced.oauth.clockSkew',
  authKeysStaleMs: 'advanced.oauth.staleKeys',
  principalRequestBurst: 'advanced.limits.userRequestBurst',
  principalBytes: 'advanced.limits.userInFlight',
  maxBytesInFlight: 'advanced.limits.totalInFlight',
  maxStartsPerMinute: 'advanced.limits.totalStartsPerMinute',
  maxRequestsPerS: 'advanced.limits.totalRequestsPerSecond',
  principalProcesses: 'advanced.limits.userProcesses',
  maxSharedCalls: 'advanced.limits.sharedRequests',
  maxDepth: 'advanced.limits.depth',
  maxEventBytes: 'advanced.limits.event',
  maxLineBytes: 'advanced.limits.line',
  maxQueuedBytes: 'advanced.limits.queue',
  bodyTimeoutMs: 'advanced.timeouts.body',
  cancelGraceMs: 'advanced.timeouts.cancelGrace',
  slowReaderMs: 'advanced.timeouts.slowReader',
  replacedServerMs: 'advanced.timeouts.replacedServer',
  sseLingerMs: 'advanced.sse.linger',
  upgradeAfterMs: 'advanced.sse.streamAfter',
  commitAfterMs: 'advanced.sse.commitAfter',
  streamMaxAgeMs: 'advanced.sse.maxAge',
  redisTimeoutMs: 'advanced.cluster.redisTimeout',
  redisWaitMs: 'advanced.cluster.redisWait',
  leaseRenewMs: 'advanced.cluster.leaseRenewal',
  leaseMarginMs: 'advanced.cluster.leaseMargin',
  recordTtlMs: 'advanced.cluster.recordTtl',
  linkAddress: 'advanced.cluster.linkAddress',
  redisCa: 'advanced.cluster.redisCa',
  redisCert: 'advanced.cluster.redisCert',
  redisKey: 'advanced.cluster.redisKey',
  mailboxMaxBytes: 'advanced.cluster.mailbox',
  filterLists: 'advanced.filterLists',
  serverCards: 'advanced.serverCards',
  authIntrospection: 'advanced.oauth.introspection',
  authScopeClaims: 'advanced.oauth.scopeClaims',
  authScopePrefix: 'advanced.oauth.scopePrefix',
  authJwksUrl: 'advanced.oauth.jwksUrl',
  principalStartsPerMinute: 'advanced.limits.userStartsPerMinute',
  principalStreams: 'advanced.limits.userStreams',
  hstsMaxAgeS: 'advanced.hsts',
  storeSyncMs: 'advanced.replay.storeSync',
  logTotalMaxBytes: 'advanced.replay.totalMaxSize',
  logMaxEvents: 'advanced.replay.maxEvents',
  retryMs: 'advanced.sse.reconnectDelay',
  abandonedMs: 'advanced.timeouts.sessionAbandoned',
  connectionIdleMs: 'advanced.timeouts.connectionIdle',
} as const;

/**
 * The place of each server option in the entry of a server. For all servers, the same path stands below `defaults`:
 * `defaults.probes.every` in the file, `--defaults.probes.every` on the command line.
 */
export const serverPlaces = {
  era: 'era',
  share: 'share',
  affinity: 'affinity',
  warm: 'warm',
  cwd: 'cwd',
  env: 'env',
  transport: 'transport',
  headers: 'headers',
  forwardHeaders: 'forwardHeaders',
  auth: 'auth',
  credentials: 'credentials',
  identity: 'identity',
  allowTools: 'allowTools',
  denyTools: 'denyTools',
  allowPrompts: 'allowPrompts',
  denyPrompts: 'denyPrompts',
  tools: 'tools',
  listTtlMs: 'lists.ttl',
  sse: 'sse',
  ws: 'ws',
  onBackendExit: 'onExit',
  hibernateAfterMs: 'hibernateAfter',
  requiredScopes: 'scopes.required',
  toolScopes: 'scopes.tools',
  startTimeoutMs: 'timeouts.start',
  probeEveryMs: 'probes.every',
  probeRequired: 'probes.required',
  upstreamCa: 'tls.ca',
  upstreamCert: 'tls.cert',
  upstreamKey: 'tls.key',
  uid: 'process.uid',
  gid: 'process.gid',
  maxMemoryBytes: 'process.memory',
  listCache: 'advanced.listCache',
  rerun: 'advanced.rerun',
  shareLingerMs: 'advanced.shareLinger',
  poolMax: 'advanced.poolMax',
  connectTimeoutMs: 'advanced.connectTimeout',
  endpointTimeoutMs: 'advanced.endpointTimeout',
  postTimeoutMs: 'advanced.postTimeout',
  upstreamIdleMs: 'advanced.streamIdle',
  stdinCloseGraceMs: 'advanced.stdinCloseGrace',
  terminateGraceMs: 'advanced.terminateGrace',
  parentDeathSignal: 'advanced.parentDeathSignal',
  probeFailures: 'advanced.probeFailures',
  probeSuccesses: 'advanced.probeSuccesses',
  sessionless: 'advanced.sessionless',
  probeTimeoutMs: 'advanced.probeTimeout',
} as const;

/** The branch of the options for all servers. */
export const defaultsBranch = 'defaults';

/** The short flags of the options that most installations set. A variable has the same short name: `GANGWAY_PORT`. */
const shortFlags = {
  host: '--host',
  port: '--port',
  path: '--path',
  publicUrl: '--public-url',
  adminPort: '--admin-port',
  open: '--open',
  allowOrigin: '--allow-origin',
  allowHost: '--allow-host',
  tlsCert: '--tls-cert',
  tlsKey: '--tls-key',
  apiKeysFile: '--api-keys-file',
  redis: '--redis',
  logLevel: '--log-level',
  maxSessions: '--max-sessions',
  sessionIdleMs: '--session-idle',
  era: '--era',
  share: '--share',
  warm: '--warm',
  cwd: '--cwd',
  env: '--env',
  headers: '--header',
  transport: '--transport',
} as const satisfies Partial<Record<keyof typeof gatewayPlaces | keyof typeof serverPlaces, string>>;

const paths = new Map<string, string>([
  ...Object.entries(gatewayPlaces),
  ...Object.entries(serverPlaces).map(([key, path]) => [key, `${defaultsBranch}.${path}`] as const),
]);

/** The path of an option in the tree. An option of servers is below `defaults`. */
export const treePathOf = (key: string): string => paths.get(key) ?? key;

const shortFlagByKey = new Map<string, string>(Object.entries(shortFlags));
const serverPathByKey = new Map<string, string>(Object.entries(serverPlaces));

/** The short flag of an option, if it has one. */
export const shortFlagOf = (key: string): string | undefined => shortFlagByKey.get(key);

/** The place of an option in the entry of a server, if the option belongs to servers. */
export const serverPathOf = (key: string): string | undefined => serverPathByKey.get(key);

/** True for an option that rarely needs a change. */
export const isAdvanced = (key: string): boolean => /(?:^|\.)advanced\./.test(treePathOf(key));

/** `timeouts.sessionIdle` → `GANGWAY_TIMEOUTS_SESSION_IDLE`, `--session-idle` → `GANGWAY_SESSION_IDLE`. */
export const variableOf = (name: string): string =>
  `GANGWAY_${name
    .replace(/^--/, '')
    .replace(/[A-Z]/g, (letter) => `_${letter}`)
    .replace(/[.-]/g, '_')
    .toUpperCase()}`;
