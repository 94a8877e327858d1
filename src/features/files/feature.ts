import type { FilesFeature } from '../../app/features/stores.ts';
import { explainDisk } from './disk-errors.ts';

export const files: FilesFeature = {
  // Loaded only where sessions are in files, because loading the engine takes a part of a start.
  open: async (options) => (await import('./file-store.ts')).openFileStore(options),
  explain: explainDisk,
};
