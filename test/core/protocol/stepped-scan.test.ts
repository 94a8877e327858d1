import { expect, it } from 'vitest';
import { copyOf, defaultLimits, type ScannedValue, SteppedScan, scanJson } from '../../../src/core/protocol/json.ts';

const maxDepth = 8;

/** The outcome of a scan in steps of this size, and how many steps it took. */
function scanInSteps(text: Buffer, step: number) {
  const values: ScannedValue[] = [];
  const scan = new SteppedScan(text, maxDepth, (scanned) => values.push(copyOf(scanned)), defaultLimits, step);
  for (let steps = 1; ; steps += 1) {
    const outcome = scan.step();
    if (outcome !== undefined) return { steps, outcome: outcome.ok ? { ...outcome, values } : outcome };
  }
}

/** Numbers that look random and are the same each time. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

/** A text that is a message, a batch or something else, with white space and escapes in many places. */
function randomText(random: (below: number) => number): string {
  const space = (): string => [' ', '', '', '\n\t', ' '.repeat(12)][random(5)] as string;
  const string = (): string =>
    `"${Array.from({ length: random(6) }, () => ['x', '\\n', '\\u00e9', 'é', '\\"', 'x'.repeat(40)][random(6)]).join('')}"`;
  const around = (open: string, parts: string[], close: string): string => open + parts.join(`${space()},`) + close;
  const times = (most: number, make: () => string): string[] => Array.from({ length: random(most) }, make);
  const key = (): string =>
    random(3) > 0 ? `"k\\n${random(1e6)}"` : (['"id"', '"params"', '"_meta"', '"\\u006d"'][random(4)] as string);
  const value = (depth: number): string => {
    const kind = random(depth > 8 ? 3 : 6);
    if (kind === 0) return string();
    if (kind === 1)
      return ['1', 'true', 'null', '-1.5e7', '123456789012', '01', 'nul'][random(200) > 0 ? random(5) : 5] as string;
    if (kind === 2) return `${space()}${random(1e9)}${space()}`;
    if (kind === 3)
      return around(
        `[${space()}`,
        times(5, () => space() + value(depth + 1)),
        ']',
      );
    return object(depth);
  };
  const object = (depth: number): string =>
    around(
      '{',
      times(6, () => `${space()}${key()}${space()}:${space()}${value(depth + 1)}`),
      `${space()}}`,
    );
  const text =
    random(3) === 0
      ? around(
          '[',
          times(6, () => object(1)),
          ']',
        )
      : object(0);
  return random(20) === 0 ? text.slice(0, random(text.length)) : text;
}

it('[S-05] finds in steps of any size what one scan finds', () => {
  const random = randomNumbers(7);
  const seen = new Map<string, number>();
  for (let round = 0; round < 1_200; round += 1) {
    const text = Buffer.from(randomText(random));
    const expected = scanJson(text, maxDepth);
    for (const step of [2, 3, 7, 50]) expect(scanInSteps(text, step).outcome, text.toString()).toEqual(expected);
    const kind = expected.ok ? `ok ${expected.batch}` : expected.fault;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
  }
  // The texts were of all kinds.
  expect([...seen.keys()].sort()).toEqual(['duplicate_key', 'not_json', 'ok false', 'ok true', 'too_deep']);
});

it('[S-05] reads each kind of value without end in many steps, also within one string or key', () => {
  const most = 300_000;
  for (const value of [
    `[${'0,'.repeat(most)}0]`,
    `{${'"":0,'.repeat(most)}"":0}`,
    `"${'\\n'.repeat(most)}"`,
    `{"${'\\n'.repeat(most)}":0}`,
    '[{"a":"\\n"},'.repeat(most / 3).concat('0', ']'.repeat(most / 3)),
  ]) {
    const deepEnough = Number.POSITIVE_INFINITY;
    const text = Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"a":${value}}}}`);
    let steps = 0;
    let end = 0;
    const scan = new SteppedScan(text, deepEnough, (scanned) => (end = scanned.end), defaultLimits, 10_000);
    for (; steps < 1_000; steps += 1) if (scan.step()?.ok) break;
    expect(end).toBe(text.length);
    expect(steps).toBeGreaterThan(8);
    expect(steps).toBeLessThan(100);
  }
});

it('has the same bounds in steps', () => {
  const escapes = Buffer.from(`{"a":"${'\\nxxxxxxxxxxxxxxxxxx'.repeat(2 ** 21 + 1)}"}`);
  expect(scanInSteps(escapes, 2 ** 18).outcome).toEqual({ ok: false, fault: 'too_many_values' });
  const longKey = Buffer.from(`{"${'\\n'.repeat(100_000)}":1}`);
  expect(scanInSteps(longKey, 1_000).outcome).toEqual({ ok: false, fault: 'key_too_long' });
  const fine = Buffer.from(`{"${'\\n'.repeat(2_000)}":1}`);
  expect(scanInSteps(fine, 10).outcome).toEqual(scanJson(fine, maxDepth));
});

it('[G-09] [P8] counts long keys as work, those that must be folded more than others', () => {
  const keys = (text: string) =>
    Buffer.from(`{"params":{${Array.from({ length: 500 }, (_, n) => `"${n}${text}":1`).join()}}}`);
  const stepsOf = (text: string): number => scanInSteps(keys(text), 2 ** 16).steps;
  expect([stepsOf(''), stepsOf('x'.repeat(2_000)) > 10, stepsOf('é'.repeat(1_000)) > 20]).toEqual([1, true, true]);
  expect(scanInSteps(keys('é'.repeat(1_000)), 2 ** 16).outcome).toEqual(scanJson(keys('é'.repeat(1_000)), maxDepth));
});
