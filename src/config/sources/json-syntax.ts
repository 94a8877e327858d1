/** A syntax error in JSON text. Lines and columns count from 1. */
export interface JsonSyntaxError {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Deeper nesting has no meaning in a configuration, and the scan recurses. */
const maxDepth = 100;

/**
 * Finds the first fault of a JSON text; undefined if `JSON.parse` accepts the text. Also refuses a repeated key in an
 * object, of which `JSON.parse` would silently drop one. V8's own message is not used: in some versions of Node.js it
 * has no position, and it repeats the text nearby, including secrets.
 */
export function findJsonSyntaxError(text: string): JsonSyntaxError | undefined {
  let at = 0;
  let message: string | undefined;

  function fail(expected: string): false {
    message ??= at >= text.length ? `the text ends, but ${expected} is expected` : `${expected} is expected here`;
    if (text.startsWith('//', at) || text.startsWith('/*', at)) message = 'JSON has no comments; remove this comment';
    return false;
  }

  function take(pattern: RegExp): string | undefined {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  }

  /** Skips blanks, then the given character if it is next. */
  function takeMark(mark: string): boolean {
    take(blanks);
    if (text[at] !== mark) return false;
    at++;
    return true;
  }

  function value(depth: number): boolean {
    if (depth > maxDepth) return fail(`nesting of at most ${maxDepth} levels`);
    if (takeMark('{')) return object(depth);
    if (takeMark('[')) return items(']', 'a value', () => value(depth + 1));
    if (text[at] === '"') return stringToken() !== undefined;
    return take(scalar) !== undefined || fail('a value');
  }

  function object(depth: number): boolean {
    const keys = new Set<unknown>();
    return items('}', 'a key in double quotes', () => {
      take(blanks);
      const start = at;
      const token = text[at] === '"' ? stringToken() : undefined;
      if (token === undefined) return fail('a key in double quotes');
      const key: unknown = JSON.parse(token);
      if (keys.has(key)) {
        at = start;
        message = 'this key appears twice in its object';
        return false;
      }
      keys.add(key);
      return (takeMark(':') || fail('a colon')) && value(depth + 1);
    });
  }

  function items(end: string, expected: string, item: () => boolean): boolean {
    if (takeMark(end)) return true;
    for (;;) {
      if (!item()) return false;
      if (takeMark(end)) return true;
      if (!takeMark(',')) return fail(`a comma or ${end}`);
      take(blanks);
      if (text[at] === end) return fail(`${expected} after the comma`);
    }
  }

  function stringToken(): string | undefined {
    const start = at;
    at++;
    for (;;) {
      take(plainCharacters);
      if (text[at] === '"') return text.slice(start, ++at);
      if (text[at] === '\\') {
        if (take(escaped) === undefined) fail('an escape such as \\n, \\" or \\u0041');
        else continue;
      } else if (at < text.length) fail('\\n or another escape, not a raw control character,');
      else fail('the closing quote');
      return undefined;
    }
  }

  function end(): boolean {
    take(blanks);
    return at === text.length || fail('the end of the text');
  }

  if (value(0) && end()) return undefined;
  const before = text.slice(0, at).split('\n');
  return {
    line: before.length,
    column: (before.at(-1) ?? '').length + 1,
    message: message ?? 'a value is expected here',
  };
}

const blanks = /[ \t\r\n]*/y;
const scalar = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON's own rule, RFC 8259 section 7
const plainCharacters = /[^"\\\u0000-\u001f]*/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
