import type { AuditFeature } from '../../app/features/telemetry.ts';
import { createAudit } from './audit.ts';
import { verifyChain } from './verify-chain.ts';

export const audit: AuditFeature = { open: createAudit, verify: verifyChain };
