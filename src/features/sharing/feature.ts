import type { SharingFeature } from '../../app/features/servers.ts';
import { KeptProcesses } from './kept-processes.ts';

export const sharing: SharingFeature = { keep: (options) => new KeptProcesses(options) };
