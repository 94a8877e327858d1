import { SparseMap } from '../../util/sparse-map.ts';
import type { InputRound } from '../session-handle.ts';

/** So many rounds are remembered; who comes later with one that is forgotten finds its questions answered (P8). */
const maxRounds = 10_000;

/**
 * Which rounds of input the session has had (2026-07-28, basic/patterns/mrtr). One is consumed once: a client that sends it
 * again, since it heard no answer, gets the same outcome; one with other answers is refused.
 */
export class InputRounds {
  readonly #digests = new SparseMap<string, string>();

  /** False if the round was given other answers before. */
  admits({ name, digest }: InputRound): boolean {
    const known = this.#digests.get(name);
    if (known !== undefined) return known === digest;
    const [oldest] = this.#digests.keys();
    if (this.#digests.size >= maxRounds && oldest !== undefined) this.#digests.delete(oldest);
    this.#digests.set(name, digest);
    return true;
  }
}
