import { loadLibrary } from '../../util/load-library.ts';

/** A syntax error. Lines and columns count from 1. */
export interface JsoncSyntaxError {
  readonly line: number;
  readonly column: number;
  /** What is wrong, without any part of the text. */
  readonly message: string;
}

/** The value of a text, or its first syntax error. */
export type JsoncRead =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: JsoncSyntaxError };

/** Deeper nesting has no meaning in a configuration, and the parser recurses. */
const maxDepth = 100;

/** An object whose end was not read yet. A map also holds a key such as `__proto__`. */
interface OpenObject {
  readonly members: Map<string, unknown>;
  /** The key whose value is read next. */
  key: string;
}

/**
 * Reads JSON with comments and trailing commas (JSONC), as VS Code writes it. Refuses a repeated key in an object, one
 * of which would silently be lost. Never throws, and no message repeats a part of the text, which may be a secret.
 */
export function readJsonc(text: string): JsoncRead {
  const { visit, printParseErrorCode } = loadLibrary('jsonc-parser');
  const root: unknown[] = [];
  const open: (OpenObject | unknown[])[] = [root];

  const add = (value: unknown): void => {
    const container = open.at(-1);
    if (container === undefined) return;
    if (Array.isArray(container)) container.push(value);
    else container.members.set(container.key, value);
  };
  const begin = (container: OpenObject | unknown[], line: number, character: number): void => {
    if (open.length > maxDepth) throw new SyntaxFault(line, character, `nesting is limited to ${maxDepth} levels`);
    open.push(container);
  };
  const end = (): void => {
    const container = open.pop();
    if (container !== undefined) add(Array.isArray(container) ? container : Object.fromEntries(container.members));
  };

  try {
    visit(
      text,
      {
        onObjectBegin: (_offset, _length, line, character) => begin({ members: new Map(), key: '' }, line, character),
        onObjectEnd: end,
        onArrayBegin: (_offset, _length, line, character) => begin([], line, character),
        onArrayEnd: end,
        onLiteralValue: add,
        onObjectProperty(key, _offset, _length, line, character) {
          const object = open.at(-1);
          if (object === undefined || Array.isArray(object)) return;
          if (object.members.has(key)) throw new SyntaxFault(line, character, 'this key appears twice in its object');
          object.key = key;
        },
        onError(code, _offset, _length, line, character) {
          throw new SyntaxFault(line, character, messages.get(printParseErrorCode(code)) ?? 'this is not JSON');
        },
      },
      { allowTrailingComma: true },
    );
  } catch (cause) {
    if (!(cause instanceof SyntaxFault)) throw cause;
    return { ok: false, error: { line: cause.line, column: cause.column, message: cause.message } };
  }
  return { ok: true, value: root[0] };
}

/** Ends the visit at the first syntax error: the parser itself would go on. */
class SyntaxFault extends Error {
  readonly line: number;
  readonly column: number;

  /** @param line from 0, as the parser counts, like `character` */
  constructor(line: number, character: number, message: string) {
    super(message);
    this.line = line + 1;
    this.column = character + 1;
  }
}

/** The messages by the name of the parser's error code. */
const messages: ReadonlyMap<string, string> = new Map([
  ['InvalidSymbol', 'this word is not JSON; texts and keys need double quotes'],
  ['InvalidNumberFormat', 'this is not a number'],
  ['UnexpectedEndOfNumber', 'digits are missing at the end of this number'],
  ['PropertyNameExpected', 'a key in double quotes is expected here'],
  ['ColonExpected', 'a colon is expected here'],
  ['ValueExpected', 'a value is expected here'],
  ['CommaExpected', 'a comma is expected here'],
  ['CloseBraceExpected', 'the text ends, but a closing brace is expected'],
  ['CloseBracketExpected', 'the text ends, but a closing bracket is expected'],
  ['EndOfFileExpected', 'the end of the text is expected here'],
  ['UnexpectedEndOfComment', 'this comment has no end'],
  ['UnexpectedEndOfString', 'this text has no closing quote on its line'],
  ['InvalidUnicode', 'this text has a \\u without four hexadecimal digits'],
  ['InvalidEscapeCharacter', 'this text has an unknown escape; known ones are \\n, \\", \\\\ and \\u0041 for example'],
  ['InvalidCharacter', 'this text has a raw control character; write \\n or another escape'],
]);
