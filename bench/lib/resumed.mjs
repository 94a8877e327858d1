// Runs that are gone on with: by the options that they were begun with, which stand in the first row of each.
import { UsageError } from './command.mjs';
import { lastRunIn, resultsFile } from './results.mjs';

/** What says how a run is told, and not what is measured. */
const beside = ['resume', 'out', 'list', 'report', 'write', 'replace'];

/** The options that say what is measured. */
export const optionsOfRun = (values) =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !beside.includes(name)));

/**
 * The options of the last run in a file of results. Throws if there is none; or if others were given, which would measure something else
 * under its name.
 */
export function optionsOfResumed(out, given) {
  const [first] = lastRunIn(resultsFile(out));
  const where = `bench/results/${out}.jsonl`;
  if (first === undefined)
    throw new UsageError(`There is no run in ${where} to go on with; begin one without --resume`);
  const wanted = Object.entries(optionsOfRun(given));
  // Of runs of before there is no such note: whoever goes on says what was asked.
  if (first.asked === undefined) {
    if (wanted.length > 0) return given;
    throw new UsageError(`The last run in ${where} does not say what it was asked; give its arguments beside --resume`);
  }
  if (wanted.every(([name, value]) => first.asked[name] === value)) return { ...given, ...first.asked };
  const words = Object.entries(first.asked).map(([name, value]) => `--${name}${value === true ? '' : ` ${value}`}`);
  throw new UsageError(
    `The last run in ${where} had other arguments (${words.join(' ') || 'none'}); give them, or --resume alone`,
  );
}
