import type { ViewsFeature } from '../../app/features/servers.ts';
import { FilterRules } from '../../core/backend/filter-rules.ts';
import { NameReports } from './name-reports.ts';
import { openView } from './view-backend.ts';

export const views: ViewsFeature = {
  open({ config, address, version, cancelGraceMs, emit, serverOf }) {
    const { name, timeouts } = config;
    const { members, timeoutMs } = address;
    const nameReports = new NameReports();
    return openView({
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
  },
};
