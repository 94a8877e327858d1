import type { ResultLimitsFeature } from '../../app/features/calls.ts';
import { KeptTexts } from './kept-texts.ts';
import { ResultLimiter } from './result-limiter.ts';

export const resultLimits: ResultLimitsFeature = {
  limit(options) {
    const texts = new KeptTexts(options);
    return (opening) => new ResultLimiter(options, texts, opening);
  },
};
