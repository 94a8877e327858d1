import { parse } from 'shell-quote';

/** The words of a command, or why there are none: one clear sentence for the operator. */
export type SplitCommand =
  | { readonly ok: true; readonly argv: string[] }
  | { readonly ok: false; readonly message: string };

const quoted = /\\[\s\S]|'[^']*'|"(?:\\[\s\S]|[^"\\])*"/g;

/**
 * Splits one string into words as a POSIX shell does: white space, quotes and backslashes. No shell runs and nothing is
 * expanded: `$HOME`, `*` and `~` stay text. What only a shell could do is refused, never passed on as text.
 */
export function splitCommand(text: string): SplitCommand {
  if (text.includes('\0')) return refuse('The command holds a NUL byte, which no program can be given. Remove it.');
  // shell-quote drops a quote that is not closed, without a word
  if (/['"\\]/.test(text.replace(quoted, '')))
    return refuse(
      'The command has a quote that is not closed, or ends in a backslash. Close it, or escape it with \\.',
    );

  const argv: string[] = [];
  for (const entry of parse(hideExpansions(text))) {
    if (typeof entry === 'string') argv.push(showExpansions(entry));
    else if ('comment' in entry)
      return refuse('The command holds a # that a shell would take for a comment. Put it in quotes, or remove it.');
    else if (entry.op === 'glob' && 'pattern' in entry) argv.push(showExpansions(entry.pattern));
    else
      return refuse(
        `The command holds ${entry.op}, but no shell is run. Put it in quotes if it is meant as text; if you need a shell, give the command as sh -c '…'.`,
      );
  }

  const [command] = argv;
  if (command === undefined || command === '') return refuse('The command is empty. Name the program to run.');
  if (/^[A-Za-z_]\w*=/.test(command))
    return refuse(
      `The command starts with ${command.split('=', 1)[0]}=, but no shell is run. Set the variable in "env", or start the command with env.`,
    );
  return { ok: true, argv };
}

const refuse = (message: string): SplitCommand => ({ ok: false, message });

/**
 * shell-quote expands variables and begins a comment at every #, where a shell does so only at the start of a word. Both
 * are hidden from it behind a NUL, which a command cannot hold. After a backslash it does the right thing by itself.
 */
const hideExpansions = (text: string): string =>
  text.replace(/\\[\s\S]|\$|(?<=[^\s;&|<>()])#/g, (found) => (found === '$' ? '\0d' : found === '#' ? '\0h' : found));

const showExpansions = (word: string): string => word.replaceAll('\0d', '$').replaceAll('\0h', '#');
