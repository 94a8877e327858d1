import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { prettyLine } from '../../../../src/core/ops/log/pretty-line.ts';

/** What pino writes for a line, prettily. */
function pretty(fields: object, message: string, hasColors = false): string {
  const lines: string[] = [];
  const logger = pino(
    {
      base: null,
      timestamp: () => ',"time":"2026-11-22T01:02:03.456Z"',
      formatters: { level: (level) => ({ level }) },
    },
    { write: (line: string) => void lines.push(prettyLine(line, hasColors)) },
  );
  logger.child({ part: 'session' }).warn(fields, message);
  return lines.join('');
}

describe('a line of the log for a person', () => {
  test('has the time, the level, the part, the message, and the fields behind it', () => {
    const fields = { server: 'files', pid: 7, detail: 'It ended. Again.', dropped: { noise: 1 }, exitCode: null };
    expect(pretty(fields, 'session ended')).toBe(
      '01:02:03.456Z WARN  session session ended server=files pid=7 detail="It ended. Again." dropped={"noise":1} exitCode=null\n',
    );
  });

  test('has what an error says of itself and of its cause below it', () => {
    const error = new Error('no room', { cause: new Error('a full disk') });
    const [head, ...stack] = pretty({ err: error, server: 'x' }, 'failed').trimEnd().split('\n');
    expect(head).toBe('01:02:03.456Z WARN  session failed server=x');
    expect(stack[0]).toBe('    Error: no room');
    expect(stack.join('\n')).toContain('caused by: Error: a full disk');
  });

  test('sends a terminal nothing that it would obey, whatever the fields and the message hold', () => {
    const hostile = '\u001b[2J\u0007\u009b31m\u2028\u202e\r\n\tx';
    const line = pretty({ [hostile]: hostile, list: [hostile], err: new Error(hostile) }, hostile);
    expect(line.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
    expect(line).toContain('\\u001b[2J');
  });

  test('has colours where they are wanted', () => {
    expect(pretty({}, 'x', true)).toContain('\u001b[33mWARN \u001b[0m');
    expect(pretty({}, 'x', false)).not.toContain('\u001b');
  });
});
