// The command line of a program: its options and its help, and in one line what whoever runs it can mend.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { inspect, parseArgs } from 'node:util';

/** Something that whoever runs a program can mend. Its message is all that is told of it: what is wrong, and what to do. */
export class UsageError extends Error {}

/**
 * What a program was told, as `parseArgs` has it; from then on a `UsageError` that nobody catches is told in one line. With `--help`, prints the
 * comment at the top of the program, which begins with how it is called, and ends.
 * @param program its `import.meta`
 * @param options those of `parseArgs`; `type: 'number'` with what `numberOf` wants
 */
export function readCommand({ filename }, options = {}, { allowPositionals = false } = {}) {
  process.on('uncaughtException', (error) => {
    process.stderr.write(`${error instanceof UsageError ? error.message : inspect(error)}\n`);
    process.exit(1);
  });
  const help = helpOf(filename);
  const { values, positionals } = parse(options, allowPositionals, `See ${help.split(/ \[|\n/, 1)[0]} --help`);
  if (values.help) {
    process.stdout.write(`${help}\n`);
    process.exit(0);
  }
  for (const [name, { type, ...limits }] of Object.entries(options)) {
    if (type === 'number' && values[name] !== undefined) values[name] = numberOf(`--${name}`, values[name], limits);
  }
  return { values, positionals };
}

/** The number that a text is: whole, from `least` to `most`; or, if it may be a fraction, any above 0. */
function numberOf(what, text, { least = 1, most = Number.MAX_SAFE_INTEGER, isFraction = false } = {}) {
  const number = /^\s*$/.test(text) ? Number.NaN : Number(text);
  const isFine = isFraction ? Number.isFinite(number) && number > 0 : Number.isInteger(number) && number >= least;
  if (isFine && number <= most) return number;
  const upTo = most === Number.MAX_SAFE_INTEGER ? ' up' : ` to ${most}`;
  throw new UsageError(
    `${what} is ${isFraction ? 'a number above 0' : `a whole number from ${least}${upTo}`}, and not "${text}"`,
  );
}

/** Throws unless there is the build that is measured. */
export function requireBuild(program) {
  if (!existsSync(program)) throw new UsageError(`There is no ${program}; build it first: npm run build`);
}

/** Throws unless these programs of Redis are on the PATH. */
export function requireRedis(...programs) {
  const missing = programs.find((program) => spawnSync(program, ['--version']).error !== undefined);
  if (missing !== undefined)
    throw new UsageError(`${missing} does not start; install it (Debian: apt-get install redis)`);
}

const helpOf = (filename) =>
  /^(\/\/.*\n)+/
    .exec(readFileSync(filename, 'utf8'))[0]
    .trimEnd()
    .replaceAll(/^\/\/ ?/gm, '');

function parse(options, allowPositionals, hint) {
  const texts = Object.entries(options).map(([name, { type }]) => [
    name,
    { type: type === 'number' ? 'string' : type },
  ]);
  const all = { ...Object.fromEntries(texts), help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ args: withNegatives(process.argv.slice(2)), options: all, allowPositionals });
  } catch (error) {
    throw new UsageError(`${error.message.replaceAll('\n', ' ').replace(/\.?$/, '.')} ${hint}`);
  }
}

/** `--rounds -1` has a number that is too small, and no option `-1`. */
const withNegatives = (words) =>
  words
    .map((word, i) => (/^-\d/.test(words[i + 1] ?? '') ? `${word}=${words[i + 1]}` : word))
    .filter((_, i) => !/^-\d/.test(words[i]));
