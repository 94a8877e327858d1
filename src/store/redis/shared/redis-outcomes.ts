import type { RoundOutcomeStore } from '../../shared/outcomes.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys } from '../keys.ts';
import type { RunScript } from '../script.ts';

/** What outcomes stand on. */
export interface RedisOutcomesParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly keys: Keys;
}

/** A hash for each call, by round. */
export const createRedisOutcomes = ({ run, runScript, keys }: RedisOutcomesParts): RoundOutcomeStore => ({
  async keep(call, round, outcome, forMs) {
    await runScript('keep-outcome', [keys.outcomes(call)], [round, outcome, Math.ceil(forMs)]);
  },
  async find(call, round) {
    return (await run((client) => client.hgetBuffer(keys.outcomes(call), `${round}`))) ?? undefined;
  },
});
