import type { ConsoleFeature } from '../../app/features/telemetry.ts';
import { connectConsole } from './connect-console.ts';

export const console: ConsoleFeature = { connect: connectConsole };
