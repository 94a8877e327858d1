import type { ConsoleFeature } from '../../app/features/telemetry.ts';

export const console: ConsoleFeature = {
  // Loaded only with an operator port: other commands, and gateways without one, start without it.
  connect: async (options) => (await import('./connect-console.ts')).connectConsole(options),
};
