import type { DefinitionsFeature } from '../../app/features/calls.ts';
import { watchDefinitions } from './definition-watch.ts';
import { openPins, preparePins } from './pin-file.ts';

export const definitions: DefinitionsFeature = { watch: watchDefinitions, openPins, preparePins };
