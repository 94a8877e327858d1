import type { ServerConfig } from '../../config/config.ts';
import { parsedCredentials } from '../../config/options/client-credential-options.ts';
import { policySettings } from '../../config/options/policy-option.ts';
import { linkBackends } from '../../core/backend/link/link.ts';
import { withMappedHeaders } from '../../core/backend/link/map-headers.ts';
import { readLists } from '../../core/backend/list-reader.ts';
import { createWarmPool } from '../../core/backend/starting/warm-pool.ts';
import { RerunPolicy } from '../../core/call/rerun.ts';
import { headersForMember } from '../../core/protocol/http/forwarded-headers.ts';
import type { Server } from '../../core/server/server.ts';
import { type GatewaySetup, needed } from '../features/gateway-features.ts';
import { version } from '../version.ts';
import { filterInterceptors, type RunningServer, type ServerTelemetry, serverFacts } from './run-server.ts';

/**
 * Prepares a view, which is a server whose backends are the backends of other servers.
 * @param serverOf finds a server as its sessions use it now; undefined if there is no such server any more
 */
export function runView(
  config: ServerConfig,
  setup: GatewaySetup,
  { emit, listSubscribers }: Pick<ServerTelemetry, 'emit' | 'listSubscribers'>,
  serverOf: (server: string) => Server | undefined,
): RunningServer {
  const { config: gateway, features } = setup;
  const { address } = config;
  if (address?.transport !== 'view') throw new Error('the server is no view');
  const own = policySettings(config.policy)?.showHeaders;
  const shownHeaders = own === undefined ? address.shown : [...new Set([...own, ...(address.shown ?? [])])];
  const memberNeeds = address.receivers?.map(({ credentials, isLocal, ...needs }) => ({
    ...needs,
    credentials: parsedCredentials(credentials, isLocal),
  }));
  const getsNothing = shownHeaders === undefined && memberNeeds === undefined;
  const open = needed(features.views, 'views').open({
    config,
    address,
    version,
    cancelGraceMs: gateway.timeouts.graceMs,
    emit,
    serverOf: getsNothing ? serverOf : withOwnHeaders(serverOf),
  });
  const reruns = new RerunPolicy(config.rerun);
  const subscribers = [...(listSubscribers?.(config.name) ?? []), reruns.learn];
  const pool = createWarmPool({
    open: linkBackends(open, [...filterInterceptors(config, setup), ...readLists(subscribers)]),
    size: 0,
    onSpareEnd: () => undefined,
    onOutputDropped: () => undefined,
  });
  const server = {
    ...serverFacts(config, pool.open, reruns, features),
    shownHeaders,
    memberNeeds,
    unwrapCall: address.searchTools ? needed(features.toolSearch, 'searchTools of a view').unwrapCall : undefined,
    isRemote: true,
    sharesProcess: false,
    processes: address.processes,
    // The servers report the start of each process themselves.
    keepsProcesses: true,
    canMoveSessions: () => address.members.some((member) => serverOf(member.name)?.canMoveSessions?.() === true),
  };
  return { config, pool, openSibling: pool.open, server, modern: undefined };
}

/**
 * A server of a view gets only its own part of what clients send for the servers. Nothing is changed where the servers
 * of the view get nothing of their clients.
 */
const withOwnHeaders =
  (serverOf: (server: string) => Server | undefined) =>
  (name: string): Server | undefined => {
    const server = serverOf(name);
    if (server === undefined) return undefined;
    const needs = { token: server.exchangesTokens === true, sender: server.shownHeaders !== undefined };
    return { ...server, open: withMappedHeaders(server.open, (headers) => headersForMember(headers, name, needs)) };
  };
