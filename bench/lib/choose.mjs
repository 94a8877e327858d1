/** The entries of a table that were asked for; a name followed by `*` stands for all that begin with it. */
export function choose(table, asked) {
  const names = asked.split(',').flatMap((name) => {
    const found = Object.keys(table).filter((key) =>
      name.endsWith('*') ? key.startsWith(name.slice(0, -1)) : key === name,
    );
    if (found.length === 0) throw new Error(`there is no ${name}; --list names what there is`);
    return found;
  });
  return [...new Set(names)].map((name) => ({ name, ...table[name] }));
}
