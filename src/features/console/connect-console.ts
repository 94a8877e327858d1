import type { ConsoleOptions } from '../../app/features/telemetry.ts';
import type { ConsoleHook } from '../../core/ops/console-hook.ts';
import { GatewayRecord } from './gateway-record.ts';

/** Connects the console to a gateway. */
export function connectConsole(options: ConsoleOptions): ConsoleHook {
  const recorded = new GatewayRecord(options);
  return {
    receive: recorded.receive,
    meter: recorded.record.traffic.meter,
    observe: (server) => recorded.backends.observe(server),
    async open(parts) {
      // Loaded when the gateway listens, because clients do not wait for the page.
      const { createStatusPage } = await import('./console.ts');
      return createStatusPage(recorded, parts);
    },
  };
}
