import type { RoundOutcomeStore } from '../../shared/outcomes.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';
import type { RunScript } from '../script.ts';

/** The parts that outcomes in Redis are built from. */
export interface RedisOutcomesParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly keys: Keys;
}

/** Stores the outcomes of each call as a hash, by round. */
export const createRedisOutcomes = ({ run, runScript, keys }: RedisOutcomesParts): RoundOutcomeStore => ({
  async keep(call, round, outcome, ttlMs) {
    await runScript('keep-outcome', [keys.outcomes(call)], [round, outcome, Math.ceil(ttlMs)]);
  },
  async find(call, round) {
    return (await run((client) => client.hgetBuffer(keys.outcomes(call), `${round}`))) ?? undefined;
  },
});
