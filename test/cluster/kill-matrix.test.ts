import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RedisServer } from '../support/redis-server.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { loadMs } from '../support/wait-for.ts';
import {
  type Fault,
  faults,
  type MatrixRun,
  type Method,
  methods,
  type Phase,
  type Place,
  phases,
  places,
  runMatrix,
  struckAt,
} from './matrix.ts';
import { noticedMs } from './patience.ts';

interface Expected {
  readonly outcomes: readonly string[];
  /** How often the server runs it. */
  readonly runs: readonly number[];
}

const answered: Expected = { outcomes: ['answered'], runs: [1] };
const unknown: Expected = { outcomes: ['outcome_unknown'], runs: [1] };
const answeredAgain: Expected = { outcomes: ['answered'], runs: [2] };
const perhapsUnknown: Expected = { outcomes: ['answered', 'outcome_unknown'], runs: [1] };
const perhapsAgain: Expected = { outcomes: ['answered'], runs: [1, 2] };

/** What becomes of a call, by P3 to P6 and P9. */
function expectedOf(fault: Fault, place: Place, phase: Phase, method: Method): Expected {
  const { isOwnerStruck, isIngressStruck } = struckAt(place);
  const isTool = method === 'tools/call';
  if (fault === 'SIGTERM') return answered;
  // Its client has no event id to come again with; if the instance wakes up, it hears from it what is known then.
  if (phase === 'JSON' && isIngressStruck && fault === 'kill -9') return { outcomes: ['broken'], runs: [1] };
  // An instance that hears nothing of the store says so after a lease and a second (docs/decisions/0200).
  const isElsewhere = places[place].owner !== places[place].ingress;
  if (phase === 'JSON' && isIngressStruck && isElsewhere && fault === 'partition') return unknown;
  // Nobody has taken over the session of an owner that answered the others during its lease. It goes on there.
  if (phase === 'JSON' && isOwnerStruck && !isElsewhere && fault === 'partition')
    return isTool ? perhapsUnknown : perhapsAgain;
  // An answer that came while there was no way to the client is not kept: it has no place in the log.
  if (!isOwnerStruck && phase === 'JSON') return isTool ? perhapsUnknown : perhapsAgain;
  // What an owner that lives still owes is asked for again, if it could be asked whether it lives.
  if (!isOwnerStruck && phase === 'JSON' && isTool) return { outcomes: ['answered', 'outcome_unknown'], runs: [1] };
  if (!isOwnerStruck) return answered;
  return isTool ? unknown : answeredAgain;
}

const nameOf = ({ outcome }: ReturnType<MatrixRun['cell']>): string =>
  outcome.outcome === 'error' ? outcome.reason : outcome.outcome;

/** One for all. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startUsedRedis();
});
afterAll(() => redis?.stop());

describe.each(faults)('[F01] [F02] [F03] [F11] [R7.22] [P3] [P9] %s', (fault) => {
  let run: MatrixRun;
  beforeAll(async () => {
    run = await runMatrix(fault, redis);
  }, 120_000);

  describe.each(Object.keys(places) as Place[])('of %s', (place) => {
    test.each(phases.flatMap((phase) => methods.map((method) => [phase, method] as const)))(
      'in the phase %s of %s: answered as promised, and the session goes on',
      (phase, method) => {
        const cell = run.cell(place, phase, method);
        const { outcomes, runs } = expectedOf(fault, place, phase, method);
        expect(outcomes, JSON.stringify(cell)).toContain(nameOf(cell));
        expect(runs, JSON.stringify(cell)).toContain(cell.runs);
        expect(cell.pinged, 'the status of a ping in the session').toBe(200);
        if (nameOf(cell) === 'broken') return;
        // Where the ingress lives, the stream of the client goes on as if nothing had happened.
        if (phase === 'stream' && !struckAt(place).isIngressStruck) expect(cell.isSameConnection).toBe(true);
        expect(cell.answeredAfterMs).toBeLessThan(noticedMs + loadMs);
      },
    );
  });

  test('[P4] [P5] [P6] leaves nothing wrong in what clients saw and logs have', () => {
    expect(run.violations).toEqual([]);
  });
});
