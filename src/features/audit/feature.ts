import type { AuditFeature } from '../../app/features/telemetry.ts';
import { createAudit } from './audit.ts';

export const audit: AuditFeature = { open: createAudit };
