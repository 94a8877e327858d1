import type { ToolSearchFeature } from '../../app/features/tool-search.ts';
import { ToolIndexes } from './tool-index.ts';
import { ToolSearch } from './tool-search.ts';
import { unwrapCall } from './unwrap-call.ts';

export const toolSearch: ToolSearchFeature = {
  search(options) {
    const indexes = new ToolIndexes();
    return () => new ToolSearch(options, indexes);
  },
  unwrapCall,
};
