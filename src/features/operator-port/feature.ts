import type { OperatorPortFeature } from '../../app/features/telemetry.ts';
import { startAdminServer } from './admin-server.ts';

export const operatorPort: OperatorPortFeature = { start: startAdminServer };
