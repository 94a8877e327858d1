import type { CardsFeature } from '../../app/features/endpoints.ts';
import { Introduction } from './introduction.ts';
import { addCardRoutes } from './server-cards.ts';

export const cards: CardsFeature = { addRoutes: addCardRoutes, createIntroduction: () => new Introduction() };
