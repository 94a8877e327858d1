import type { CardsFeature } from '../../app/features/endpoints.ts';
import { addCardRoutes } from './server-cards.ts';

export const cards: CardsFeature = { addRoutes: addCardRoutes };
