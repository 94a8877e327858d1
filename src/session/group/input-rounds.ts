import { BoundedMap } from '../../util/bounded-map.ts';
import type { InputRound } from '../session-handle.ts';

/** How many rounds are remembered (P8). A client that repeats an older round finds its server requests answered. */
const maxRounds = 10_000;

/**
 * The rounds of input that the session has received (2026-07-28, basic/patterns/mrtr). Each round is consumed once. A
 * client that repeats a round because it got no answer gets the same outcome. The same round with other answers is
 * refused.
 */
export class InputRounds {
  readonly #digests = new BoundedMap<string, string>(maxRounds);

  /** False if the round was given other answers before. */
  admits({ name, digest }: InputRound): boolean {
    const known = this.#digests.get(name);
    if (known !== undefined) return known === digest;
    this.#digests.set(name, digest);
    return true;
  }
}
