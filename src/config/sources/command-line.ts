import { nearestName } from '../../util/text/nearest-name.ts';
import { abbreviateName, type ReportIssue } from '../issues.ts';
import { joinWords, type Option } from '../options/option-kinds.ts';
import { hasLiteralSecret } from '../servers/identity-options.ts';
import { expandWhole, type ReferenceSources } from './expand-variables.ts';
import { fromText, type Given, type GivenValue } from './given-values.ts';
import {
  exampleValueOf,
  explainUnknownFlag,
  isKnownFlag,
  isShortFlag,
  optionOfFlag,
  pathOfFlag,
} from './known-flags.ts';

/** The forms in which the command line names servers, for `--help` and for the fault when it names none. */
export const forms = [
  'mcp-gangway [options] -- <command> [args…]',
  'mcp-gangway [options] <url>',
  'mcp-gangway [options] --config <file>',
] as const;

/** The words that can follow `--help`: all options, or a command. */
export const helpTopics = ['all', 'check', 'config', 'health', 'key', 'completion'] as const;

/** A subject of help: the gateway in short, or one of the topics. */
export type HelpTopic = 'gateway' | (typeof helpTopics)[number];

/** The commands that can stand anywhere before `--`. They take the options of the gateway. */
const gatewayCommands = ['serve', 'check', 'health'] as const;
/** The commands that must be the first argument, with the words that can follow them. */
const wordsByCommand = {
  config: ['print', 'schema'],
  completion: ['bash', 'zsh', 'fish'],
  key: [],
} as const;

/** A command of the program. */
export type Command = (typeof gatewayCommands)[number] | keyof typeof wordsByCommand | 'help' | 'version';

/** The options of `key`, as they were given. */
export interface KeyWords {
  /** The file after `--add`. */
  readonly addTo: string | undefined;
  readonly scopes: readonly string[];
  readonly expires: string | undefined;
}

/** The result of reading the arguments. */
export interface CommandLine {
  readonly command: Command;
  /** The topic after `--help`; undefined for a word that is not a topic. */
  readonly helpOn: HelpTopic | undefined;
  /** The options of the command line, by path. */
  readonly given: Given;
  readonly configFile: string | undefined;
  /** The words after `--`, or undefined if there is no `--`. */
  readonly serverCommand: readonly string[] | undefined;
  /** The first argument that is a URL: the address of a remote server. */
  readonly url: { readonly path: string; readonly text: string } | undefined;
  /** The name of the only server. */
  readonly name: string | undefined;
  /** The flags of commands, such as `--json`. */
  readonly switches: ReadonlySet<string>;
  /** The options of `key`. */
  readonly key: KeyWords;
  /** The word after `key`, `config` or `completion`. */
  readonly word: string | undefined;
  /** True if a word is neither an option nor a URL, or is the option of a server's command. This was reported. */
  readonly hasStrayWord: boolean;
}

/** The commands that accept each switch. */
const commandsBySwitch = new Map<string, readonly Command[]>([
  ['--json', ['check']],
  ['--config-only', ['check']],
  ['--ready', ['health']],
  ['--open', ['serve']],
]);

/** The options of `key`, which no other command has. */
const keyFlags: readonly string[] = ['--add', '--scope', '--expires'];

/** Flags with a value that are not options of the tree. */
const ownValues = ['--config', '--name', ...keyFlags];

/** The only options of the commands that do not read a configuration. */
const onlyFlags: Partial<Record<Command, readonly string[]>> = { key: keyFlags, completion: [] };

/**
 * Reads the arguments and reports all faults. `parseArgs` of node:util is not used: it throws at the first fault, or
 * takes `--host` for the value of a preceding `--port`. Faults repeat only words that look like a program or a command:
 * a stray word may be a secret or a URL with a secret.
 */
export function readCommandLine(argv: readonly string[], references: ReferenceSources): CommandLine {
  const { report } = references;
  const end = argv.indexOf('--');
  const own = end === -1 ? argv : argv.slice(0, end);
  const texts = new Map<string, string[]>();
  const words: number[] = [];
  const switches = new Set<string>();
  let command: Command = 'serve';
  let helpOn: HelpTopic | undefined = 'gateway';
  let hasCommand = false;
  let hasStrayOption = false;

  for (let index = 0; index < own.length; index++) {
    const argument = own[index] ?? '';
    if (!argument.startsWith('-')) {
      const found = commandAt(argument, index);
      if (found !== undefined && !hasCommand && words.length === 0 && command === 'serve') {
        command = found;
        hasCommand = true;
        continue;
      }
      words.push(index);
      // The first stray word is most likely the server's program, and the words after it are its arguments.
      if (!isUrl(argument) && !(command in wordsByCommand) && end === -1) break;
    } else if (argument === '-h' || argument === '--help') {
      const next = own[index + 1];
      if (isTopic(next)) helpOn = next;
      else if (isPlainWord(next)) helpOn = undefined;
      else if (isTopic(command)) helpOn = command;
      command = 'help';
    } else if (argument === '-v' || argument === '--version') command = command === 'help' ? 'help' : 'version';
    else if (commandsBySwitch.has(argument)) switches.add(argument);
    else {
      const [flag = '', inline] = argument.split(/=(.*)/s, 2);
      const only = onlyFlags[command];
      if (only !== undefined && !only.includes(flag)) {
        report(nameOfUnknown(argument), explainForeignFlag(flag, command, only));
        if (inline === undefined && isPlainWord(own[index + 1])) index++;
        continue;
      }
      if (!isKnownFlag(flag)) {
        report(nameOfUnknown(argument), explainUnknownFlag(flag, end !== -1));
        hasStrayOption ||= isShortFlag(flag) && end === -1;
        if (inline === undefined && isPlainWord(own[index + 1])) index++; // the next word is most likely the value, not a second fault
        continue;
      }
      if (optionOfFlag(flag)?.kind === 'boolean') {
        texts.set(flag, [...(texts.get(flag) ?? []), inline ?? 'true']);
        continue;
      }
      // Text with two dashes is never the value. Unless it is a known flag it is skipped: it may be a secret.
      const next = inline === undefined ? own[index + 1] : undefined;
      const value = inline ?? (next?.startsWith('--') ? undefined : next);
      if (value === undefined || (value === '' && ownValues.includes(flag))) report(flag, explainNoValue(flag));
      else texts.set(flag, [...(texts.get(flag) ?? []), value]);
      if (next !== undefined && !isKnownFlag(next)) index++;
    }
  }

  const takesServer = gatewayCommands.some((each) => each === command) || command === 'config';
  for (const [flag, commands] of commandsBySwitch)
    if (switches.has(flag) && command !== 'help' && !commands.includes(command))
      report(
        flag,
        `is only for mcp-gangway ${commands.join(' and ')}; remove it, or run mcp-gangway ${commands[0]} ${flag}`,
      );
  const commandWord = command in wordsByCommand ? words.shift() : undefined;
  if (takesServer) reportWords(words, own, end !== -1, report);
  else if (command in wordsByCommand && (words.length > 0 || end !== -1))
    report(command, `takes only ${onlyWords[command as keyof typeof wordsByCommand]}`);
  for (const flag of keyFlags)
    if (texts.has(flag) && command !== 'key' && command !== 'help')
      report(flag, 'is only for mcp-gangway key; remove it, or run mcp-gangway key alice --add keys.json');
  return {
    command,
    helpOn,
    given: givenValues(texts, references),
    configFile: texts.get('--config')?.[0],
    serverCommand: end === -1 ? undefined : argv.slice(end + 1),
    url: firstUrl(words, own),
    name: texts.get('--name')?.[0],
    switches,
    key: {
      addTo: texts.get('--add')?.[0],
      scopes: texts.get('--scope')?.flatMap((words) => words.split(' ').filter((word) => word !== '')) ?? [],
      expires: texts.get('--expires')?.[0],
    },
    word: commandWord === undefined ? undefined : own[commandWord],
    hasStrayWord: hasStrayOption || words.some((index) => !isUrl(own[index] ?? '')),
  };
}

/** What can follow each command, for the fault of a further word. */
const onlyWords = {
  config: 'one word, such as: mcp-gangway config print',
  completion: 'one word, such as: mcp-gangway completion bash',
  key: 'one word, such as: mcp-gangway key alice',
} as const;

/** The command that a word is at its position. */
function commandAt(word: string, index: number): Command | undefined {
  const first = Object.keys(wordsByCommand) as (keyof typeof wordsByCommand)[];
  return (
    gatewayCommands.find((each) => each === word) ?? (index === 0 ? first.find((each) => each === word) : undefined)
  );
}

/** Reports a word after a command that is not one of its words. */
export function checkCommandWord(
  command: 'config' | 'completion',
  word: string | undefined,
  report: ReportIssue,
): void {
  const known: readonly string[] = wordsByCommand[command];
  if (word !== undefined && known.includes(word)) return;
  const nearest = word === undefined ? undefined : nearestName(word, known);
  report(
    command,
    `must be followed by ${joinWords(known)}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`,
  );
}

/** The fault of an option that the command does not have: what it was probably meant to be, and what there is. */
function explainForeignFlag(flag: string, command: Command, only: readonly string[]): string {
  if (only.length === 0) return `is not an option of mcp-gangway ${command}, which has no options; remove it`;
  const nearest = nearestName(flag, only);
  const meant = nearest === undefined ? `its options are ${joinWords(only, 'and')}` : `did you mean ${nearest}?`;
  return `is not an option of mcp-gangway ${command}; ${meant}`;
}

const isTopic = (word: string | undefined): word is HelpTopic => helpTopics.some((topic) => topic === word);

const isPlainWord = (word: string | undefined): boolean => word !== undefined && !word.startsWith('-') && !isUrl(word);

const isUrl = (word: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(word);

/** An option with a default shows it as an example. */
function explainNoValue(flag: string): string {
  const example = exampleValueOf(flag);
  return example === undefined
    ? `needs a value: ${flag} VALUE, or ${flag}=VALUE if the value begins with --`
    : `needs a value, such as ${flag} ${example}`;
}

/** Kinds of options that can be given more than once. */
const repeatable: ReadonlySet<Option['kind']> = new Set(['list', 'map', 'headers']);

function givenValues(texts: ReadonlyMap<string, string[]>, references: ReferenceSources): Given {
  const { report } = references;
  const given = new Map<string, GivenValue>();
  for (const [flag, values] of texts) {
    const path = pathOfFlag(flag);
    const { kind = 'string', secrets } = optionOfFlag(flag) ?? {};
    if (values.length > 1 && !repeatable.has(kind) && flag !== '--scope')
      report(flag, 'is given more than once, but has only one value; give it once');
    if (path === undefined) continue;
    if (given.has(path)) report(flag, `sets the same option as ${given.get(path)?.path}; give only one of them`);
    if (kind === 'json') {
      // Replaced in the values: the text of a file must not change the JSON around it.
      const value = fromText(kind, values);
      if (secrets === 'members' && hasLiteralSecret(value))
        report(
          flag,
          'has a secret, which every user of this machine can read on the command line; write ${file:/path} instead',
        );
      const whole = expandWhole(value, flag, references);
      if (whole !== undefined) given.set(path, { path: flag, ...whole });
      continue;
    }
    const expanded = values.map((value) => expandWhole(value, flag, references));
    const whole = expanded.filter((each) => each !== undefined);
    if (whole.length < expanded.length) continue;
    const expandedTexts = whole.map(({ value }) => String(value));
    const isWritten = whole.some(({ written }) => written !== undefined);
    given.set(path, {
      path: flag,
      value: fromText(kind, expandedTexts),
      written: isWritten ? fromText(kind, values) : undefined,
    });
  }
  return given;
}

/** @param hasCommand true if a command of a server follows `--` */
function reportWords(words: readonly number[], own: readonly string[], hasCommand: boolean, report: ReportIssue): void {
  for (const [count, index] of words.entries()) {
    const word = own[index] ?? '';
    const path = nameOfWord(word, index);
    if (isUrl(word) && count > 0)
      report(
        path,
        'is a second URL; list the servers in a file, { "mcpServers": { "a": { "url": "…" }, "b": { "url": "…" } } }, and use mcp-gangway --config <file>',
      );
    else if (isUrl(word)) continue;
    else report(path, explainStrayWord(word, hasCommand));
  }
}

/** The fault of a stray word: usually a server's command without `--`, or a misspelled command of the gateway. */
function explainStrayWord(word: string, hasCommand: boolean): string {
  if (word in wordsByCommand) return `must be the first word: mcp-gangway ${word} …`;
  if (/\.(?:jsonc?|ya?ml|toml)$/.test(word) && isShown(word) && !hasCommand)
    return `unknown command; for a configuration file, write mcp-gangway --config ${word}`;
  const nearest = nearestName(word, [...gatewayCommands, ...Object.keys(wordsByCommand), '--help', '--version']);
  const remedy = hasCommand
    ? 'put options and the name of a command before --'
    : `put -- before the server's command, and options of the gateway before --: mcp-gangway [options] -- ${isShown(word) ? word : '<command>'} …`;
  return nearest === undefined
    ? `unknown command; ${remedy}`
    : `unknown command; did you mean ${nearest}? Otherwise ${remedy}`;
}

/** A word that looks like a program, a package or a command. A secret has capital letters or more digits. */
const isShown = (word: string): boolean => /^(?=.{1,40}$)@?[a-z./][a-z./_-]*\d{0,2}[a-z./_-]*$/.test(word);

/** A URL is named by its host: the rest can be a secret. */
function nameOfWord(word: string, index: number): string {
  if (isShown(word)) return word;
  const host = /^(?:https?|wss?|tcp):/i.test(word) && URL.canParse(word) ? new URL(word).host : '';
  return host === '' ? `argument ${index + 1}` : `argument ${index + 1} (${host})`;
}

function firstUrl(words: readonly number[], own: readonly string[]): CommandLine['url'] {
  const index = words.find((each) => isUrl(own[each] ?? ''));
  return index === undefined ? undefined : { path: nameOfWord(own[index] ?? '', index), text: own[index] ?? '' };
}

/** The name of an unknown option without the part that may be a value: `-pSECRET`, `--token:SECRET`. */
function nameOfUnknown(argument: string): string {
  return abbreviateName(/^--[A-Za-z0-9_.-]*|^-[!-~]/.exec(argument)?.[0] ?? '-');
}
