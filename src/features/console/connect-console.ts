// The console: the status page and the playground on the admin port. Only this file is known outside.

import type { ConsoleOptions } from '../../app/features/telemetry.ts';
import type { ConsoleHook } from '../../core/ops/console-hook.ts';
import { ConsoleRecord } from './record/console-record.ts';

/** Connects the console to a gateway. */
export function connectConsole(options: ConsoleOptions): ConsoleHook {
  const record = new ConsoleRecord(options);
  return {
    receive: record.receive,
    meter: record.traffic.meter,
    observe: (server) => record.backends.observe(server),
    async open(parts) {
      // Loaded when the gateway listens, because clients do not wait for the page.
      const { createStatusPage } = await import('./console.ts');
      return createStatusPage(record, parts);
    },
  };
}
