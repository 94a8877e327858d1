import { fuzzers as answers } from './answers.ts';
import { fuzzers as configuration } from './configuration.ts';
import { fuzzers as eventIds } from './event-ids.ts';
import { fuzzers as headers } from './headers.ts';
import { fuzzers as json } from './json.ts';
import { fuzzers as lines } from './lines.ts';
import { fuzzers as longRuns } from './long-runs.ts';
import { fuzzers as redis } from './redis.ts';
import { fuzzers as requestState } from './request-state.ts';
import { fuzzers as splice } from './splice.ts';
import { fuzzers as sse } from './sse.ts';

/** Every fuzzer, by subject. */
export const fuzzers = [
  ...answers,
  ...json,
  ...longRuns,
  ...splice,
  ...lines,
  ...sse,
  ...eventIds,
  ...headers,
  ...requestState,
  ...configuration,
  ...redis,
];
