/** Colours of the levels (ECMA-48, SGR). */
const colors: Readonly<Record<string, number>> = { trace: 90, debug: 90, info: 32, warn: 33, error: 31, fatal: 31 };

const gray = 90;

/** Characters that a terminal could obey or that change the direction of text. Line breaks and tabs are included. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const plain = /^[\w./:@+-]+$/;

/**
 * Formats a line of the log for a person: time (UTC), level, part, message and fields, with the error below. The
 * terminal gets no control characters except colours, whatever the fields contain.
 */
export function prettyLine(line: string, hasColors: boolean): string {
  const { time, level, part, msg, err, lastOutput, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const paint = (text: string, color: number): string => (hasColors ? `\u001b[${color}m${text}\u001b[0m` : text);
  const fieldTexts = Object.entries(fields).map(
    ([key, value]) => ` ${paint(`${escapeUnprintable(key)}=`, gray)}${formatValue(value)}`,
  );
  const head = [
    paint(String(time).slice(11), gray),
    paint(String(level).toUpperCase().padEnd(5), colors[String(level)] ?? gray),
    paint(escapeUnprintable(String(part)).padEnd(7), gray),
    escapeUnprintable(String(msg ?? '')),
  ];
  return `${head.join(' ')}${fieldTexts.join('')}\n${formatOutput(lastOutput)}${formatError(err)}`;
}

function formatValue(value: unknown): string {
  if (typeof value === 'string' && plain.test(value)) return value;
  return escapeUnprintable(JSON.stringify(value));
}

/** The last output of a server, in the form of `mcp-gangway check`. */
const formatOutput = (lines: unknown): string =>
  Array.isArray(lines) ? lines.map((line) => `    | ${escapeUnprintable(String(line))}\n`).join('') : '';

/** The stack of an error, with its causes as pino writes them. Other properties appear in JSON lines only. */
function formatError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { stack, message } = error as { readonly stack?: unknown; readonly message?: unknown };
  const lines = String(stack ?? message).split('\n');
  return lines.map((line) => `    ${escapeUnprintable(line.trim())}\n`).join('');
}

const escapeUnprintable = (text: string): string =>
  text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
