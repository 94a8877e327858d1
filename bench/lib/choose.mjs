import { UsageError } from './command.mjs';

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
