/** Lines that name no cause: marks and brackets alone, places in files, and the version of the runtime. */
const isSilent = (line: string): boolean =>
  /^[\s^~{}[\]]*$/.test(line) ||
  /^\s+at\s/.test(line) ||
  /^\s*File "/.test(line) ||
  /^(?:file:\/\/|node:|\/|[A-Za-z]:\\)\S*:\d+$/.test(line) ||
  /^Node\.js v\d/.test(line);

/** True for a line of source code: Node.js shows one above a mark, and Python below the name of a file. */
const isSource = (line: string, before = '', after = ''): boolean =>
  /^\s*[\^~]+\s*$/.test(after) || (/^\s*File "/.test(before) && /^\s/.test(line));

const withoutSource = (lines: readonly string[]): readonly string[] =>
  lines.filter((line, index) => !isSource(line, lines[index - 1], lines[index + 1]));

/**
 * Leaves out the properties of an error, which Node.js prints between brackets after its stack: its message, which says
 * more, is above the stack. The cause of an error stays.
 */
function withoutProperties(lines: readonly string[]): readonly string[] {
  let areProperties = false;
  return lines.filter((line) => {
    if (/^\s+at\s.*\{$/.test(line)) areProperties = true;
    else if (/^\S/.test(line)) areProperties = false;
    return !areProperties || line.includes('[cause]');
  });
}

/**
 * The last lines of a server that say something of the cause: those at the end of a stack do not. Without any, the last
 * lines.
 */
export function tellingLines(lines: readonly string[], count: number): readonly string[] {
  const telling = withoutProperties(withoutSource(lines)).filter((line) => !isSilent(line));
  return (telling.length > 0 ? telling : lines).slice(-count);
}
