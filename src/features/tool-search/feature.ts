import type { ToolSearchFeature } from '../../app/features/calls.ts';
import { ToolFinder } from './tool-finder.ts';
import { ToolIndexes } from './tool-index.ts';
import { unwrapCall } from './unwrap-call.ts';

export const toolSearch: ToolSearchFeature = {
  search(options) {
    const indexes = new ToolIndexes();
    return () => new ToolFinder(options, indexes);
  },
  unwrapCall,
};
