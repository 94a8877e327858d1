import type { RemoteServer } from '../../config/config.ts';
import type { UpstreamTls } from '../../core/backend/upstream-tls.ts';
import type { UpstreamTokens } from '../../core/backend/upstream-tokens.ts';
import type { ServerEvent } from '../../core/ops/server-events.ts';
import type { Emit } from '../../core/util/telemetry/emit.ts';
import { type GatewaySetup, needed } from '../features/gateway-features.ts';
import type { Openers } from '../features/servers.ts';
import { readTlsFiles } from '../tls-files.ts';
import { version } from '../version.ts';

/**
 * The share of the start's time limit that a server has for its first answer. The rest is for the reason: a session that
 * gives its server up at the limit could not tell it.
 */
const answerShare = 0.9;

/**
 * Creates the openers of a remote server. Throws an error for the operator if a certificate or key cannot be used, so
 * that the fault appears at the start and not at the first session.
 * @param tokens the tokens that all connections to the server share; undefined if it needs none
 */
export function remoteOpeners(
  config: RemoteServer,
  { config: gateway, features: { remote, webSocket } }: GatewaySetup,
  emit: Emit<ServerEvent>,
  onStarted: () => void,
  tokens: UpstreamTokens | undefined,
): Openers {
  const { address, timeouts } = config;
  if (address.transport === 'view') throw new Error('a view has no connection of its own');
  const transport =
    address.transport === 'ws' ? needed(webSocket, 'servers at ws://') : needed(remote, 'servers at a URL');
  const answerTimeoutMs = Math.ceil(timeouts.startMs * answerShare);
  const tls = readServerTls(config);
  return transport.openers({ config, gateway, version, tls, tokens, answerTimeoutMs, emit, onStarted });
}

/** Reads the certificates for connections to a server; none for a server without TLS. Throws as `readTlsFiles` does. */
export function readServerTls({ address, tls }: RemoteServer): UpstreamTls {
  const protocol = address !== undefined && 'url' in address ? address.url.protocol : '';
  return protocol === 'https:' || protocol === 'wss:' ? readTlsFiles('tls', tls) : {};
}
