import type { FiltersFeature } from '../../app/features/calls.ts';
import { filtersOf } from './filter-messages.ts';

export const filters: FiltersFeature = { interceptorsOf: filtersOf };
