import type { FiltersFeature } from '../../app/features/servers.ts';
import { filtersOf } from './filter-messages.ts';

export const filters: FiltersFeature = { interceptorsOf: filtersOf };
