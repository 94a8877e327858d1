import { readdirSync, readFileSync } from 'node:fs';
import { parseAst, transformWithEsbuild } from 'vite';
import { root } from '../support/gateway.ts';

/** A regular expression of the program. */
export interface Found {
  /** The file, from the checkout on. */
  readonly file: string;
  readonly source: string;
  readonly flags: string;
}

interface Node {
  readonly type?: string;
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly callee?: { readonly name?: string };
}

/** All regular expressions that stand in `src`, and the files that make some at run time. */
export async function findRegularExpressions(): Promise<{ found: Found[]; made: string[] }> {
  const found: Found[] = [];
  const made: string[] = [];
  const files = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  for (const name of files.sort()) {
    const file = `src/${name}`;
    const { code } = await transformWithEsbuild(readFileSync(root + file, 'utf8'), file, { sourcemap: false });
    const visit = (value: unknown): void => {
      if (Array.isArray(value)) return value.forEach(visit);
      if (typeof value !== 'object' || value === null) return;
      const { type, regex, callee } = value as Node;
      if (regex !== undefined) found.push({ file, source: regex.pattern, flags: regex.flags });
      if ((type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp') made.push(file);
      Object.values(value).forEach(visit);
    };
    visit(parseAst(code));
  }
  return { found, made };
}

/** What attackers repeat: letters, digits, blanks, line ends, and every sign that a form of ours knows. */
const atoms = [
  ...['a', 'A', '0', ' ', '\t', '\n', '\r\n', '\0', '\xa0', '\u{1f600}'],
  ...['-', '_', '.', ',', ':', ';', '/', '\\', '=', '*', '?', '@', '#', '%', '$', '(', '[', '{', '"', "'", '<'],
  ...['a ', 'a,', ', ', 'a.', 'a-', '/a', 'a:', ':0', 'a=', '%20', '\\"', '${a', '${a:-', '=;', '0,', '[::', 'http://'],
] as const;

/** What comes before and behind: beginnings with which a form goes on, and ends at which it fails late. */
const heads = ['', 'a:', '/', '"', '${'] as const;
const tails = ['', '\0', 'x\n'] as const;

/** Texts of that many characters on which a careless expression takes long. */
export function* worstCases(length: number): Generator<string> {
  for (const atom of atoms) {
    const body = atom.repeat(Math.ceil(length / atom.length)).slice(0, length);
    for (const head of heads) for (const tail of tails) yield head + body.slice(head.length + tail.length) + tail;
  }
}
