const levels: readonly unknown[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];

/** True for a line of the log that is at least so severe. */
export function isAtLeast({ level }: Readonly<Record<string, unknown>>, least: 'info' | 'warn' | 'error'): boolean {
  const severity = levels.indexOf(level);
  if (severity < 0) throw new Error(`no level: ${String(level)}`);
  return severity >= levels.indexOf(least);
}
