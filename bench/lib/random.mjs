/** A sequence of numbers from 0 to 1 that depends on the seed alone, so that it is the same in each process. */
export function createRandom(seed = 0) {
  let state = (seed * 2_654_435_761 + 42) % 2 ** 31;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
