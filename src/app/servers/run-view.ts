import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { FilterRules } from '../../core/backend/filter-rules.ts';
import { linkBackends } from '../../core/backend/link/link.ts';
import { createWarmPool } from '../../core/backend/starting/warm-pool.ts';
import type { Server } from '../../core/server/server.ts';
import { filtersOf } from '../../features/filters/filter-messages.ts';
import { openView } from '../../features/views/view-backend.ts';
import { NameReports } from '../../features/views/view-names.ts';
import { version } from '../version.ts';
import { type RunningServer, type ServerTelemetry, serverFacts } from './run-server.ts';

/**
 * Prepares a view, which is a server whose backends are the backends of other servers.
 * @param serverOf finds a server as its sessions use it now; undefined if there is no such server any more
 */
export function runView(
  config: ServerConfig,
  { timeouts: { graceMs: cancelGraceMs } }: Pick<GatewayConfig, 'timeouts'>,
  { emit }: Pick<ServerTelemetry, 'emit'>,
  serverOf: (server: string) => Server | undefined,
): RunningServer {
  const { name, address, timeouts } = config;
  if (address?.transport !== 'view') throw new Error('the server is no view');
  const { members, timeoutMs, processes } = address;
  const nameReports = new NameReports();
  const open = openView({
    identity: { name, version },
    members,
    serverOf,
    timeoutMs,
    startTimeoutMs: timeouts.startMs,
    cancelGraceMs,
    toolRules: new FilterRules(config.allowTools, config.denyTools, config.tools),
    onNameTroubles(troubles) {
      const { leftOut, refused } = nameReports.newIn(troubles);
      if (leftOut.length + refused.length > 0) emit({ type: 'view-names', server: name, leftOut, refused });
    },
    onUnavailable: (member, reason) => emit({ type: 'view-server-missing', server: name, member, reason }),
    onReady: (member) => emit({ type: 'view-server-ready', server: name, member }),
    onCrashLoop: (member, pauseMs) => emit({ type: 'view-crash-loop', server: name, member, pauseMs }),
    onDown: (member, end, isAtStart) => emit({ type: 'view-server-down', server: name, member, end, isAtStart }),
  });
  const pool = createWarmPool({
    open: linkBackends(open, filtersOf(config)),
    size: 0,
    onSpareEnd: () => undefined,
    onOutputDropped: () => undefined,
  });
  const server = {
    ...serverFacts(config, pool.open),
    isRemote: true,
    sharesProcess: false,
    processes,
    // The servers report the start of each process themselves.
    keepsProcesses: true,
    canMoveSessions: () => members.some((member) => serverOf(member.name)?.canMoveSessions?.() === true),
  };
  return { config, pool, openSibling: pool.open, server, modern: undefined };
}
