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
export function readCommand({ filename }, options) {
  process.on('uncaughtException', (error) => {
    process.stderr.write(`${error instanceof UsageError ? error.message : inspect(error)}\n`);
    process.exit(1);
  });
  const help = helpOf(filename);
  const values = parse(options, `See ${help.split(/ \[|\n/, 1)[0]} --help`);
  if (values.help) {
    process.stdout.write(`${help}\n`);
    process.exit(0);
  }
  for (const [name, { type, ...limits }] of Object.entries(options)) {
    if (type === 'number' && values[name] !== undefined) values[name] = numberOf(`--${name}`, values[name], limits);
  }
  return values;
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

/** Throws unless Redis is on the PATH. */
export function requireRedis() {
  if (spawnSync('redis-server', ['--version']).error !== undefined)
    throw new UsageError('redis-server does not start; install it (Debian: apt-get install redis)');
}

const helpOf = (filename) =>
  /^(\/\/.*\n)+/
    .exec(readFileSync(filename, 'utf8'))[0]
    .trimEnd()
    .replaceAll(/^\/\/ ?/gm, '');

function parse(options, hint) {
  const texts = Object.entries(options).map(([name, { type }]) => [
    name,
    { type: type === 'number' ? 'string' : type },
  ]);
  const all = { ...Object.fromEntries(texts), help: { type: 'boolean', short: 'h' } };
  try {
    return parseArgs({ options: all }).values;
  } catch (error) {
    throw new UsageError(`${error.message.replaceAll('\n', ' ').replace(/\.?$/, '.')} ${hint}`);
  }
}

/** Of more names than this a message says where they are listed. */
const maxTold = 12;

/** The entries of a table that were asked for; a name followed by `*` stands for all that begin with it. `what` one is, in a word. */
export function choose(table, asked, what) {
  const names = asked.split(',').flatMap((name) => {
    const found = Object.keys(table).filter((key) =>
      name.endsWith('*') ? key.startsWith(name.slice(0, -1)) : key === name,
    );
    if (found.length === 0) throw new UsageError(`There is no ${what} ${name}; ${toldOf(Object.keys(table))}`);
    return found;
  });
  return [...new Set(names)].map((name) => ({ name, ...table[name] }));
}

const toldOf = (names) =>
  names.length > maxTold ? 'see node bench/bench.mjs --list' : `there are ${names.join(', ')}`;
