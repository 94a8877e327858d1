import type { ConsoleHost } from '@mcp-gangway/console';
import type { ConsoleOptions } from '../../app/features/telemetry.ts';
import { redactCredentials } from '../../core/ops/redact-credentials.ts';
import { entryOf, isReason } from '../../core/protocol/faults.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import { contain } from '../../core/util/boundary.ts';

/** A client that is not admitted or exceeds a quota is refused. Other faults say nothing about who may do what. */
const refusedStatuses: ReadonlySet<number> = new Set([401, 403, 429]);

/** What the console leaves to any gateway. */
export const consoleHost: Omit<ConsoleHost, 'labelOf'> = {
  contain: (work, onFault) => contain('admin', work, onFault),
  redact: redactCredentials,
  refusesSender: (reason) =>
    reason === 'too_many_sessions' || (isReason(reason) && refusedStatuses.has(entryOf(reason).status)),
  isMeasured: (method) => method !== 'initialize' && !methodOf(method).isLongLived,
};

/** What the console leaves to a gateway whose servers have listed these names. */
export const createConsoleHost = (names: ConsoleOptions['names']): ConsoleHost => ({
  ...consoleHost,
  labelOf({ origin, method, name }) {
    const { names: kind } = methodOf(method);
    return name === undefined || kind === undefined ? undefined : names.label(origin.server, kind, name);
  },
});
