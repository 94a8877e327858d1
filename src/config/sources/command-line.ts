import { nearestName } from '../../core/util/text/nearest-name.ts';
import { abbreviateName, type ReportIssue } from '../issues.ts';
import { hasLiteralSecret } from '../options/identity-options.ts';
import { joinWords, type Option, writtenDefault } from '../options/option-kinds.ts';
import { isPackageWord } from '../servers/package-request.ts';
import {
  type Command,
  type CommandFacts,
  commandFlags,
  commandNames,
  commands,
  factsOf,
  type HelpTopic,
  helpTopics,
  serverFlags,
} from './command-table.ts';
import type { ReferenceSources } from './expand-variables.ts';
import { fromText, type Given, type GivenValue, readTexts } from './given-values.ts';
import { explainUnknownFlag, isKnownFlag, isShortFlag, optionOfFlag, pathOfFlag } from './known-flags.ts';

/** The result of reading the arguments. */
export interface CommandLine {
  readonly command: Command;
  /** The topic after `--help`; undefined for a word that is not a topic. */
  readonly helpOn: HelpTopic | undefined;
  /** The options of the command line, by path. */
  readonly given: Given;
  readonly configFile: string | undefined;
  /** The words after `--`, or from the server's package on; undefined if there is neither. */
  readonly serverCommand: readonly string[] | undefined;
  /** The first argument that is a URL: the address of a remote server. */
  readonly url: { readonly path: string; readonly text: string } | undefined;
  /** The name of the only server. */
  readonly name: string | undefined;
  /** The flags of commands, such as `--json`, each with its values. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  /** The word after `key`, `config` or `completion`. */
  readonly word: string | undefined;
  /** The words after that one, of a command that takes several. */
  readonly operands: readonly string[];
  /** True if a word is neither an option nor a URL, or is the option of a server's command. This was reported. */
  readonly hasStrayWord: boolean;
}

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
  let command: Command = 'serve';
  let helpOn: HelpTopic | undefined = 'gateway';
  let hasCommand = false;
  let hasStrayOption = false;
  /** Where the server's package stands. All that follows belongs to the server, as after `--`. */
  let packageAt: number | undefined;

  for (let index = 0; index < own.length; index++) {
    const argument = own[index] ?? '';
    if (!argument.startsWith('-')) {
      const found = commandAt(argument, index);
      if (found !== undefined && !hasCommand && words.length === 0 && command === 'serve') {
        command = found;
        hasCommand = true;
        continue;
      }
      const isServer = factsOf(command)?.example === undefined || words.length > 0;
      if (isServer && factsOf(command)?.takesOptions === true && isPackageWord(argument)) {
        packageAt = index;
        break;
      }
      words.push(index);
      // The first stray word is most likely the server's program, and the words after it are its arguments.
      if (!isUrl(argument) && factsOf(command)?.example === undefined && end === -1) break;
      continue;
    }
    if (argument === '-h' || argument === '--help') {
      const next = own[index + 1];
      if (isTopic(next)) helpOn = next;
      else if (isPlainWord(next)) helpOn = undefined;
      else if (isTopic(command)) helpOn = command;
      command = 'help';
      continue;
    }
    if (argument === '-v' || argument === '--version') {
      if (command !== 'help') command = 'version';
      continue;
    }
    const [flag = '', inline] = argument.split(/=(.*)/s, 2);
    const facts = factsOf(command);
    const foreign = explainForeignFlag(flag, command, facts);
    if (foreign !== undefined || !isKnownFlag(flag)) {
      report(nameOfUnknown(argument), foreign ?? explainUnknownFlag(flag, end !== -1));
      if (foreign === undefined) hasStrayOption ||= isShortFlag(flag) && end === -1;
      if (inline === undefined && isPlainWord(own[index + 1])) index++; // the next word is most likely the value, not a second fault
      continue;
    }
    const ownFlag = commandFlags.get(flag);
    const isSwitch = ownFlag === undefined ? optionOfFlag(flag)?.kind === 'boolean' : ownFlag.value === undefined;
    // Text with two dashes is never the value. Unless it is a known flag it is skipped: it may be a secret.
    const next = inline === undefined && !isSwitch ? own[index + 1] : undefined;
    const value = inline ?? (isSwitch ? 'true' : next?.startsWith('--') ? undefined : next);
    if (ownFlag !== undefined && isSwitch && inline !== undefined) report(flag, 'has no value; remove the text from =');
    else if (value === undefined || (value === '' && ownFlag !== undefined)) report(flag, explainNoValue(flag));
    else texts.set(flag, [...(texts.get(flag) ?? []), value]);
    if (next !== undefined && !isKnownFlag(next)) index++;
  }

  const facts = factsOf(command);
  if (facts !== undefined) reportFlagsOfOthers([...texts.keys()], command, report);
  const commandWord = facts?.example === undefined ? undefined : words.shift();
  const operands = facts?.operands === undefined ? [] : words.splice(0).map((index) => own[index] ?? '');
  if (facts?.takesOptions === true) reportWords(words, own, end !== -1, report);
  else if (facts !== undefined && (words.length > 0 || end !== -1))
    report(command, explainSurplusWord(command, facts.example));
  return {
    command,
    helpOn,
    given: givenValues(texts, references),
    configFile: texts.get('--config')?.[0],
    serverCommand: packageAt === undefined ? (end === -1 ? undefined : argv.slice(end + 1)) : argv.slice(packageAt),
    url: firstUrl(words, own),
    name: texts.get('--name')?.[0],
    flags: new Map([...texts].filter(([flag]) => commandFlags.has(flag))),
    word: commandWord === undefined ? undefined : own[commandWord],
    operands,
    hasStrayWord: hasStrayOption || words.some((index) => !isUrl(own[index] ?? '')),
  };
}

const explainSurplusWord = (command: Command, example: string | undefined): string =>
  example === undefined
    ? 'takes no further word; remove it'
    : `takes only one word, such as: mcp-gangway ${command} ${example}`;

/** Reports the flags of other commands. */
function reportFlagsOfOthers(flags: readonly string[], command: Command, report: ReportIssue): void {
  const common = [...serverFlags, ...(factsOf(command)?.flags ?? [])].map(({ flag }) => flag);
  for (const flag of flags.filter((each) => commandFlags.has(each) && !common.includes(each))) {
    const owner = commandNames.find((name) => factsOf(name)?.flags.some((each) => each.flag === flag)) ?? 'serve';
    const call = ['mcp-gangway', owner, factsOf(owner)?.example, flag, commandFlags.get(flag)?.value];
    report(
      flag,
      `is only for mcp-gangway ${owner}; remove it, or run ${call.filter((part) => part !== undefined).join(' ')}`,
    );
  }
}

/** The command that a word is at its position. A command with a word of its own must be the first word. */
const commandAt = (word: string, index: number): keyof typeof commands | undefined =>
  commandNames.find((name) => name === word && (index === 0 || factsOf(name)?.example === undefined));

/** Reports a word after a command that is not one of its words. */
export function checkCommandWord(command: Command, word: string | undefined, report: ReportIssue): void {
  const known = factsOf(command)?.words;
  if (known === undefined || (word !== undefined && known.includes(word))) return;
  const nearest = word === undefined ? undefined : nearestName(word, known);
  report(
    command,
    `must be followed by ${joinWords(known)}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`,
  );
}

/** The fault of a flag at a command without options: what it was probably meant to be, and what there is. */
function explainForeignFlag(flag: string, command: Command, facts: CommandFacts | undefined): string | undefined {
  if (facts === undefined || facts.takesOptions) return undefined;
  const only = facts.flags.map((each) => each.flag);
  if (only.includes(flag)) return undefined;
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
  const option = optionOfFlag(flag);
  const example = option && writtenDefault(option);
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
    if (values.length > 1 && !repeatable.has(kind) && !commandFlags.get(flag)?.isRepeatable)
      report(flag, 'is given more than once, but has only one value; give it once');
    if (path === undefined) continue;
    if (given.has(path)) report(flag, `sets the same option as ${given.get(path)?.path}; give only one of them`);
    if (secrets === 'members' && hasLiteralSecret(fromText(kind, values)))
      report(
        flag,
        'has a secret, which every user of this machine can read on the command line; write ${file:/path} instead',
      );
    const value = readTexts({ kind }, values, flag, references);
    if (value !== undefined) given.set(path, value);
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
  if (word in commands) return `must be the first word: mcp-gangway ${word} …`;
  if (/\.(?:jsonc?|ya?ml|toml)$/.test(word) && isShown(word) && !hasCommand)
    return `unknown command; for a configuration file, write mcp-gangway --config ${word}`;
  const nearest = nearestName(word, [...commandNames, '--help', '--version']);
  const remedy = hasCommand
    ? 'put options and the name of a command before --'
    : `put -- before the server's command, and options of the gateway before --: mcp-gangway [options] -- ${isShown(word) ? word : '<command>'} …`;
  // Names of packages mostly have a hyphen.
  const asPackage = /^[a-z]\w*-/.test(word) && isShown(word) ? `; for a package, write npx:${word} or uvx:${word}` : '';
  return nearest === undefined
    ? `unknown command; ${remedy}${asPackage}`
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
