import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitCommand } from '../../../../../src/core/backend/stdio/launch/split-command.ts';

const argvOf = (text: string) => {
  const split = splitCommand(text);
  return split.ok ? split.argv : split.message;
};

describe('splitCommand', () => {
  it.each([
    ['npx -y @scope/server --flag', ['npx', '-y', '@scope/server', '--flag']],
    ['  a \t b\n', ['a', 'b']],
    [`a 'b c' "d e" f\\ g`, ['a', 'b c', 'd e', 'f g']],
    [`a --x='b c'"d"e`, ['a', '--x=b cde']],
    [`a '' ""`, ['a', '', '']],
    [`a '{"k":"v"}' "{\\"k\\":\\"v\\"}"`, ['a', '{"k":"v"}', '{"k":"v"}']],
    [`a 'it'\\''s' "back\\\\slash" 'back\\slash'`, ['a', "it's", 'back\\slash', 'back\\slash']],
    [`a '|' ">" \\; "a & b"`, ['a', '|', '>', ';', 'a & b']],
    ['a http://host/#fragment x#y "#z"', ['a', 'http://host/#fragment', 'x#y', '#z']],
    ['a ~ über', ['a', '~', 'über']],
  ])('splits like a POSIX shell: %s', (text, argv) => {
    expect(argvOf(text)).toEqual(argv);
  });

  it.each([
    ['a $HOME ${HOME} "$HOME/${X:-y}" $$ $? $', ['a', '$HOME', '${HOME}', '$HOME/${X:-y}', '$$', '$?', '$']],
    [`a \\$HOME "\\$HOME" '\\$HOME' "\\\\$X"`, ['a', '$HOME', '$HOME', '\\$HOME', '\\$X']],
    ['a *.ts "*" b?', ['a', '*.ts', '*', 'b?']],
    [`a $'x'`, ['a', '$x']],
    ['a "$(id)" `id`', ['a', '$(id)', '`id`']],
  ])('[S12] [A01] CVE-2025-6514: expands nothing: %s', (text, argv) => {
    expect(argvOf(text)).toEqual(argv);
  });

  it.each(['a | b', 'a > b', 'a < b', 'a && b', 'a; b', 'a &', 'a $(id)', '(a)', 'a 2>&1', 'a || b', 'a <(b)'])(
    '[S12] [A01] CVE-2025-6514: refuses what only a shell could do, and says so: %s',
    (text) => {
      expect(argvOf(text)).toMatch(/runs no shell.*quotes.*sh -c/);
    },
  );

  it.each([
    ['a # b', /comment/],
    [`a 'b`, /unclosed quote/],
    ['a "b', /unclosed quote/],
    [`a 'b' "c\\"`, /unclosed quote/],
    ['a \\', /backslash/],
    ['', /empty/],
    [' \n', /empty/],
    [`'' a`, /empty/],
    ['A_1=x a', /starts with A_1=.*"env"/],
    ['a \0', /NUL/],
  ])('refuses %j with a clear message', (text, message) => {
    expect(argvOf(text)).toMatch(message);
  });

  it('gives back any words that were quoted one by one', () => {
    const word = fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0'));
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
        expect(argvOf(['cmd', ...words.map(quote)].join(' '))).toEqual(['cmd', ...words]);
      }),
    );
  });
});
