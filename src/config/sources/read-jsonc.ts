import { loadLibrary } from '../../core/util/load-library.ts';
import { abbreviateName, memberPath } from '../issues.ts';

/** A syntax error. Lines and columns count from 1. */
export interface JsoncSyntaxError {
  readonly line: number;
  readonly column: number;
  /** What is wrong, without any part of the text. */
  readonly message: string;
}

/** The position of each member by its path, such as `mcpServers.git.args[1]`. */
export type JsoncPositions = ReadonlyMap<string, Pick<JsoncSyntaxError, 'line' | 'column'>>;

/** The value of a text, or its first syntax error. */
export type JsoncRead =
  | { readonly ok: true; readonly value: unknown; readonly positions: JsoncPositions }
  | { readonly ok: false; readonly error: JsoncSyntaxError };

/** Deeper nesting has no meaning in a configuration, and the parser recurses. */
const maxDepth = 100;

/** An object whose end was not read yet. A map also holds a key such as `__proto__`. */
interface OpenObject {
  readonly members: Map<string, unknown>;
  /** The key whose value is read next. */
  key: string;
  readonly path: string;
}

/** A list whose end was not read yet. */
interface OpenList {
  readonly items: unknown[];
  readonly path: string;
}

/**
 * Reads JSON with comments and trailing commas (JSONC), as VS Code writes it. Refuses a repeated key in an object, one
 * of which would silently be lost. Never throws, and no message repeats a part of the text, which may be a secret.
 */
export function readJsonc(text: string): JsoncRead {
  const { visit, printParseErrorCode } = loadLibrary('jsonc-parser');
  const root: OpenList = { items: [], path: '' };
  const open: (OpenObject | OpenList)[] = [root];
  const positions = new Map<string, Pick<JsoncSyntaxError, 'line' | 'column'>>();
  const note = (path: string, line: number, character: number): void => {
    positions.set(path, { line: line + 1, column: character + 1 });
  };

  const add = (value: unknown): void => {
    const container = open.at(-1);
    if (container === undefined) return;
    if ('items' in container) container.items.push(value);
    else container.members.set(container.key, value);
  };
  /** The path of the value that begins now. The position of an item is noted; that of a member is its key's. */
  const pathOfNext = (line: number, character: number): string => {
    const container = open.at(-1);
    if (container === undefined || container === root) return '';
    if (!('items' in container)) return memberPath(container.path, container.key);
    const path = memberPath(container.path, container.items.length);
    note(path, line, character);
    return path;
  };
  const begin = (container: OpenObject | OpenList, line: number, character: number): void => {
    if (open.length > maxDepth) throw new SyntaxFault(line, character, `nesting is limited to ${maxDepth} levels`);
    open.push(container);
  };
  const end = (): void => {
    const container = open.pop();
    if (container !== undefined) add('items' in container ? container.items : Object.fromEntries(container.members));
  };

  try {
    visit(
      text,
      {
        onObjectBegin(_offset, _length, line, character) {
          begin({ members: new Map(), key: '', path: pathOfNext(line, character) }, line, character);
        },
        onObjectEnd: end,
        onArrayBegin(_offset, _length, line, character) {
          begin({ items: [], path: pathOfNext(line, character) }, line, character);
        },
        onArrayEnd: end,
        onLiteralValue(value, _offset, _length, line, character) {
          pathOfNext(line, character);
          add(value);
        },
        onObjectProperty(key, _offset, _length, line, character) {
          const object = open.at(-1);
          if (object === undefined || 'items' in object) return;
          if (object.members.has(key)) {
            const first = positions.get(memberPath(object.path, key))?.line;
            const place = first === undefined ? '' : `, first in line ${first}`;
            const fault = `the key ${abbreviateName(key)} appears twice in its object${place}; merge the two, or remove one`;
            throw new SyntaxFault(line, character, fault);
          }
          object.key = key;
          note(memberPath(object.path, key), line, character);
        },
        onError(code, offset, _length, line, character) {
          const isLoneComma = printParseErrorCode(code) === 'ValueExpected' && text[offset] === ',';
          const message = isLoneComma ? 'a value is missing before this comma; add it, or remove the comma' : undefined;
          throw new SyntaxFault(
            line,
            character,
            message ?? messages.get(printParseErrorCode(code)) ?? 'this is not JSON',
          );
        },
      },
      { allowTrailingComma: true },
    );
  } catch (cause) {
    if (!(cause instanceof SyntaxFault)) throw cause;
    return { ok: false, error: { line: cause.line, column: cause.column, message: cause.message } };
  }
  return { ok: true, value: root.items[0], positions };
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
  [
    'InvalidSymbol',
    'nothing in JSON begins like this; strings and keys need double quotes, and comments begin with //',
  ],
  ['InvalidNumberFormat', 'this is not a number'],
  ['UnexpectedEndOfNumber', 'digits are missing at the end of this number'],
  ['PropertyNameExpected', 'a key in double quotes is expected here'],
  ['ColonExpected', 'a colon is expected here'],
  ['ValueExpected', 'a value is expected here'],
  ['CommaExpected', 'a comma is expected here'],
  ['CloseBraceExpected', 'the text ends, but a closing brace is missing'],
  ['CloseBracketExpected', 'the text ends, but a closing bracket is missing'],
  ['EndOfFileExpected', 'the end of the text is expected here'],
  ['UnexpectedEndOfComment', 'this comment has no end'],
  ['UnexpectedEndOfString', 'this string has no closing quote on its line'],
  ['InvalidUnicode', 'this string has a \\u without four hexadecimal digits'],
  [
    'InvalidEscapeCharacter',
    'this string has an unknown escape; known escapes are \\n, \\", \\\\ and \\u0041 for example',
  ],
  ['InvalidCharacter', 'this string has a raw control character; write \\n or another escape'],
]);
