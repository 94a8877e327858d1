import { splitCommand } from '../../core/backend/stdio/launch/split-command.ts';
import type { ReportIssue } from '../issues.ts';

/** True if a file has exactly this name. */
export type FindCommand = (name: string) => boolean;

/**
 * Splits a command that is one string at its blanks, unless a file has exactly that name. Reports a string that cannot
 * be split.
 */
export function splitCommandText(
  text: string,
  path: string,
  { findCommand, report }: { findCommand: FindCommand; report: ReportIssue },
): [string, ...string[]] | undefined {
  if (!/\s/.test(text) || findCommand(text)) return [text];
  const split = splitCommand(text);
  if (!split.ok) {
    report(path, split.message);
    return undefined;
  }
  const [command, ...args] = split.argv;
  if (command !== undefined && command !== '') return [command, ...args];
  report(path, 'must not be empty');
  return undefined;
}
