import { describe } from 'vitest';
import { startLocalGateway } from '../support/local-gateway.ts';
import { withCounting } from './counting.ts';
import { randomCutLimits, testRandomCuts } from './random-cuts.ts';

describe('clients whose connections break at random bytes', () => {
  testRandomCuts({
    name: '[R7.15] [R7.11b] [R7.13] [F22] [F25] [P4] get every event once and in order',
    start: () => startLocalGateway(withCounting(...randomCutLimits)),
    resumes: 400,
    sessions: { withCalls: 8, withGet: 6 },
  });
});
