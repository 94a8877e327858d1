import { abbreviateName, type ReportIssue } from '../issues.ts';
import type { Option } from '../options/option-kinds.ts';
import { flagOf, nearestName } from '../options/option-names.ts';
import { globalOptions, serverOptions } from '../options/options.ts';
import { fromText, type Given, type GivenValue } from './given-values.ts';

/** The forms in which the command line names servers, for `--help` and for the fault when it names none. */
export const forms = [
  'mcp-gangway [options] -- <command> [args…]',
  'mcp-gangway [options] <url>',
  'mcp-gangway [options] --config <file>',
] as const;

/** The words that can follow `--help`: all options, or a command. */
export const helpTopics = ['all', 'check', 'health', 'key'] as const;

/** A subject of help: the gateway in short, or one of the topics. */
export type HelpTopic = 'gateway' | (typeof helpTopics)[number];

/** The result of reading the arguments. */
export interface CommandLine {
  readonly command: 'serve' | 'check' | 'health' | 'key' | 'help' | 'version';
  /** The topic after `--help`; undefined for a word that is not a topic. */
  readonly helpOn: HelpTopic | undefined;
  /** The options of the command line, by key. */
  readonly given: Given;
  readonly configFile: string | undefined;
  /** The words after `--`, or undefined if there is no `--`. */
  readonly serverCommand: readonly string[] | undefined;
  /** The first argument that is a URL: the address of a remote server. */
  readonly url: { readonly path: string; readonly text: string } | undefined;
  /** True if `check` prints JSON. */
  readonly isJson: boolean;
  /** True if `health` checks readiness (/readyz) instead of liveness (/healthz). */
  readonly isReadyCheck: boolean;
  /** The word after `key`. */
  readonly keyFor: string | undefined;
  /** True if a word is neither an option nor a URL, which was reported. */
  readonly hasStrayWord: boolean;
}

const keyOfFlag = new Map(Object.entries({ ...globalOptions, ...serverOptions }).map(([key]) => [flagOf(key), key]));
const kindOf = new Map(Object.entries({ ...globalOptions, ...serverOptions }).map(([key, { kind }]) => [key, kind]));
const knownFlags = ['--config', '--json', '--ready', '--help', '--version', ...keyOfFlag.keys()];
const commands = ['check', 'health', 'key', '--help', '--version'];
const defaultOf = new Map(
  Object.entries({ ...globalOptions, ...serverOptions }).map(([key, option]) => [key, option.default]),
);
/** True for a flag that turns something on or off. */
const isSwitch = (flag: string) => kindOf.get(keyOfFlag.get(flag) ?? '') === 'boolean';
const isKnownFlag = (argument: string) => knownFlags.includes(argument.split('=', 1)[0] ?? '');

/**
 * Reads the arguments and reports all faults. `parseArgs` of node:util is not used: it throws at the first fault, or
 * takes `--host` for the value of a preceding `--port`. Faults do not repeat words: a stray word may be a secret or a
 * URL with a secret.
 */
export function readCommandLine(argv: readonly string[], report: ReportIssue): CommandLine {
  const end = argv.indexOf('--');
  const own = end === -1 ? argv : argv.slice(0, end);
  const texts = new Map<string, string[]>();
  const words: number[] = [];
  let command: CommandLine['command'] = 'serve';
  let isJson = false;
  let isReadyCheck = false;
  let helpOn: HelpTopic | undefined = 'gateway';

  for (let index = 0; index < own.length; index++) {
    const argument = own[index] ?? '';
    if ((argument === 'check' || argument === 'health') && words.length === 0 && command === 'serve')
      command = argument;
    else if (argument === 'key' && index === 0) command = 'key';
    else if (!argument.startsWith('-')) words.push(index);
    else if (argument === '-h' || argument === '--help') {
      const next = own[index + 1];
      if (isTopic(next)) helpOn = next;
      else if (isPlainWord(next)) helpOn = undefined;
      else if (isTopic(command)) helpOn = command;
      command = 'help';
    } else if (argument === '-v' || argument === '--version') command = command === 'help' ? 'help' : 'version';
    else if (argument === '--json') isJson = true;
    else if (argument === '--ready') isReadyCheck = true;
    else {
      const [flag = '', inline] = argument.split(/=(.*)/s, 2);
      if (!isKnownFlag(flag)) {
        report(nameOfUnknown(argument), unknownFlag(flag));
        if (inline === undefined && isPlainWord(own[index + 1])) index++; // the next word is most likely the value, not a second fault
        continue;
      }
      if (isSwitch(flag)) {
        if (inline !== undefined) report(flag, 'takes no value');
        texts.set(flag, [...(texts.get(flag) ?? []), String(defaultOf.get(keyOfFlag.get(flag) ?? '') === false)]);
        continue;
      }
      // Text with two dashes is never the value. Unless it is a known flag it is skipped: it may be a secret.
      const next = inline === undefined ? own[index + 1] : undefined;
      const value = inline ?? (next?.startsWith('--') ? undefined : next);
      if (value === undefined || (value === '' && flag === '--config'))
        report(flag, `needs a value; for a value that begins with --, write ${flag}=…`);
      else texts.set(flag, [...(texts.get(flag) ?? []), value]);
      if (next !== undefined && !isKnownFlag(next)) index++;
    }
  }

  if (isJson && (command === 'serve' || command === 'health' || command === 'key'))
    report('--json', 'is only for mcp-gangway check');
  if (isReadyCheck && (command === 'serve' || command === 'check' || command === 'key'))
    report('--ready', 'is only for mcp-gangway health');
  if (command === 'key') {
    if (words.length > 1 || end !== -1) report('key', 'takes only a name, such as: mcp-gangway key alice');
  } else if (command !== 'help' && command !== 'version') reportWords(words, own, report);
  return {
    command,
    helpOn,
    given: givenValues(texts, report),
    configFile: texts.get('--config')?.[0],
    serverCommand: end === -1 ? undefined : argv.slice(end + 1),
    url: firstUrl(words, own),
    isJson,
    isReadyCheck,
    keyFor: command === 'key' ? own[words[0] ?? -1] : undefined,
    hasStrayWord: words.some((index) => !isUrl(own[index] ?? '')),
  };
}

const isTopic = (word: string | undefined): word is HelpTopic => helpTopics.some((topic) => topic === word);

const isPlainWord = (word: string | undefined): boolean => word !== undefined && !word.startsWith('-') && !isUrl(word);

const isUrl = (word: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(word);

/** Kinds of options that can be given more than once. */
const repeatable: ReadonlySet<Option['kind']> = new Set(['list', 'map', 'headers']);

function givenValues(texts: ReadonlyMap<string, string[]>, report: ReportIssue): Given {
  const given = new Map<string, GivenValue>();
  for (const [flag, values] of texts) {
    const key = keyOfFlag.get(flag);
    const kind = key === undefined ? 'string' : (kindOf.get(key) ?? 'string');
    if (values.length > 1 && !repeatable.has(kind)) report(flag, 'is given more than once; give it once');
    if (key !== undefined) given.set(key, { path: flag, value: fromText(kind, values) });
  }
  return given;
}

function reportWords(words: readonly number[], own: readonly string[], report: ReportIssue): void {
  for (const [count, index] of words.entries()) {
    const path = `argument ${index + 1}`;
    if (count > 0) report(path, "is unexpected; put the server's command and its arguments after --");
    else if (!isUrl(own[index] ?? '')) report(path, strayWord(own[index] ?? ''));
  }
}

/** The fault of a stray word: usually a server's command without `--`, or a misspelled command of the gateway. */
function strayWord(word: string): string {
  const nearest = nearestName(word, commands);
  return nearest === undefined || nearest === word
    ? "is not an option or a URL; put the server's command and its arguments after --"
    : `is not a command or a URL; did you mean ${nearest}? Put the server's command after --`;
}

function firstUrl(words: readonly number[], own: readonly string[]): CommandLine['url'] {
  const index = words.find((each) => isUrl(own[each] ?? ''));
  return index === undefined ? undefined : { path: `argument ${index + 1}`, text: own[index] ?? '' };
}

/** The name of an unknown option without the part that may be a value: `-pSECRET`, `--token:SECRET`. */
function nameOfUnknown(argument: string): string {
  return abbreviateName(/^--[A-Za-z0-9_-]*|^-[!-~]/.exec(argument)?.[0] ?? '-');
}

function unknownFlag(flag: string): string {
  const nearest = nearestName(flag, knownFlags);
  return `is not an option${nearest === undefined ? '; see mcp-gangway --help all' : `; did you mean ${nearest}?`}`;
}
