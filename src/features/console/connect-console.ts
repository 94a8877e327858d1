// The console: the status page and the playground on the admin port. Only this file is known outside.

import type { ConsoleHook } from '../../core/ops/console-hook.ts';
import { ConsoleRecord } from './record/console-record.ts';

/**
 * Connects the console to a gateway.
 * @param inspects true if the page shows the contents of messages
 */
export function connectConsole(inspects: boolean): ConsoleHook {
  const record = new ConsoleRecord(inspects);
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
