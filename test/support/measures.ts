import { appendFileSync, readFileSync } from 'node:fs';

interface Measure {
  readonly name: string;
  readonly target?: number;
}

const table = new URL('../../scripts/measures.json', import.meta.url);
const measures: readonly Measure[] = JSON.parse(readFileSync(table, 'utf8'));

/** What a measure of `npm run measure` should be at most. */
export function targetOf(name: string): number {
  const target = measures.find((measure) => measure.name === name)?.target;
  if (target === undefined) throw new Error(`scripts/measures.json has no target for "${name}"`);
  return target;
}

/** Notes a number for `npm run measure`, which names the file for it. */
export function noteMeasure(name: string, value: number): void {
  const file = process.env['MEASURES_FILE'];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify({ name, value })}\n`);
}
