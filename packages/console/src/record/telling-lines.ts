/** Lines that name no cause: marks below a line, frames of a stack, and the version of the runtime. */
const isSilent = (line: string): boolean =>
  /^[\s^~]*$/.test(line) || /^\s+at\s/.test(line) || /^\s*File "/.test(line) || /^Node\.js v\d/.test(line);

/**
 * The last lines of a server that say something of the cause: those at the end of a stack do not. Without any, the last
 * lines.
 */
export function tellingLines(lines: readonly string[], count: number): readonly string[] {
  const telling = lines.filter((line) => !isSilent(line));
  return (telling.length > 0 ? telling : lines).slice(-count);
}
