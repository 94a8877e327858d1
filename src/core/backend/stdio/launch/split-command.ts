import { parse } from 'shell-quote';

/** The words of a command, or one clear sentence for the operator why it cannot be split. */
export type SplitCommand =
  | { readonly ok: true; readonly argv: string[] }
  | { readonly ok: false; readonly message: string };

const quoted = /\\[\s\S]|'[^']*'|"(?:\\[\s\S]|[^"\\])*"/g;

/**
 * Splits one string into words as a POSIX shell does: white space, quotes and backslashes. No shell runs and nothing is
 * expanded: `$HOME`, `*` and `~` stay text. Syntax that needs a shell is refused, never passed on as text.
 */
export function splitCommand(text: string): SplitCommand {
  if (text.includes('\0'))
    return refuse('The command contains a NUL byte, which is not possible in arguments. Remove it.');
  // shell-quote silently drops an unclosed quote.
  if (/['"\\]/.test(text.replace(quoted, '')))
    return refuse(
      'The command has an unclosed quote, or ends with a backslash. Close the quote, or escape it with \\.',
    );

  const argv: string[] = [];
  for (const entry of parse(hideExpansions(text))) {
    if (typeof entry === 'string') argv.push(showExpansions(entry));
    else if ('comment' in entry)
      return refuse('The command contains a #, which begins a comment in a shell. Put it in quotes, or remove it.');
    else if (entry.op === 'glob' && 'pattern' in entry) argv.push(showExpansions(entry.pattern));
    else
      return refuse(
        `The command contains ${entry.op}, but the gateway runs no shell. If it is text, put it in quotes. If you need a shell, write sh -c '…'.`,
      );
  }

  const [command] = argv;
  if (command === undefined || command === '') return refuse('The command is empty. Add the program to run.');
  if (/^[A-Za-z_]\w*=/.test(command))
    return refuse(
      `The command starts with ${command.split('=', 1)[0]}=, but the gateway runs no shell. Set the variable in "env", or start the command with env.`,
    );
  return { ok: true, argv };
}

const refuse = (message: string): SplitCommand => ({ ok: false, message });

/**
 * shell-quote expands variables and begins a comment at every #, where a shell does so only at the start of a word.
 * This function hides both behind a NUL, which a command cannot hold. After a backslash shell-quote is right by itself.
 */
const hideExpansions = (text: string): string =>
  text.replace(/\\[\s\S]|\$|(?<=[^\s;&|<>()])#/g, (found) => (found === '$' ? '\0d' : found === '#' ? '\0h' : found));

const showExpansions = (word: string): string => word.replaceAll('\0d', '$').replaceAll('\0h', '#');
