/** What pino calls its levels in lines, and how a person sees them: the name, and its colour (ECMA-48, SGR). */
const levels: Readonly<Record<number, readonly [name: string, color: number]>> = {
  10: ['TRACE', 90],
  20: ['DEBUG', 90],
  30: ['INFO', 32],
  40: ['WARN', 33],
  50: ['ERROR', 31],
  60: ['FATAL', 31],
};

const gray = 90;

/** What a terminal could obey, or what turns the direction of text; line breaks and tabs too. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;
const plain = /^[\w./:@+-]+$/;

/**
 * A line of the log, as pino writes it, for a person: time (UTC), level, part, message, and the fields behind it; below it what an
 * error says of itself. Whatever the fields hold, the terminal is sent no control characters but those of the colours.
 */
export function prettyLine(line: string, hasColors: boolean): string {
  const { time, level, part, msg, err, lastOutput, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const paint = (text: string, color: number): string => (hasColors ? `\u001b[${color}m${text}\u001b[0m` : text);
  const [name, color] = levels[Number(level)] ?? ['?', gray];
  const shown = Object.entries(fields).map(([key, value]) => ` ${paint(`${visible(key)}=`, gray)}${valueText(value)}`);
  const head = [
    paint(String(time).slice(11), gray),
    paint(name.padEnd(5), color),
    paint(visible(String(part)).padEnd(7), gray),
    visible(String(msg ?? '')),
  ];
  return `${head.join(' ')}${shown.join('')}\n${outputText(lastOutput)}${errorText(err)}`;
}

function valueText(value: unknown): string {
  if (typeof value === 'string' && plain.test(value)) return value;
  return visible(JSON.stringify(value));
}

/** The lines that a server wrote last, as `mcp-gangway check` shows them. */
const outputText = (lines: unknown): string =>
  Array.isArray(lines) ? lines.map((line) => `    | ${visible(String(line))}\n`).join('') : '';

/** The stack of an error, with its causes as pino puts them there; whatever else is known of it is in the JSON. */
function errorText(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { stack, message } = error as { readonly stack?: unknown; readonly message?: unknown };
  const lines = String(stack ?? message).split('\n');
  return lines.map((line) => `    ${visible(line.trim())}\n`).join('');
}

const visible = (text: string): string =>
  text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
