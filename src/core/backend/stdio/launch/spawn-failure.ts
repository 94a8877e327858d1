import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { errorCodeOf } from '../../../util/text/error-code.ts';
import { defaultPath, isDirectory, isExecutable, locate, readInterpreter } from './locate-program.ts';
import type { Program } from './program.ts';
import { similarPrograms } from './similar-programs.ts';

const limits: Readonly<Record<string, string>> = {
  EMFILE:
    'The gateway has too many open files to start a program. Raise its limit (ulimit -n) or allow fewer sessions.',
  ENFILE: 'This host has too many open files to start a program. Raise fs.file-max or allow fewer sessions.',
  EAGAIN:
    'The process limit is reached. Raise it (ulimit -u, or the pids limit of the container), or allow fewer sessions.',
  ENOMEM: 'There is not enough memory to start a program. Add memory, or allow fewer sessions.',
  E2BIG: 'The arguments and the environment of the program are too long. Shorten them.',
  ERR_INVALID_ARG_VALUE:
    'The command, an argument, the working directory or an environment variable is empty or contains a NUL byte. Correct the configuration.',
};

/** Why a program could not be started. */
export interface SpawnFailure {
  /** One or two sentences for the operator, with advice. */
  readonly detail: string;
  /** True if there is no such command. */
  readonly isNotFound: boolean;
}

/**
 * Explains to the operator why a program could not be started and what to do. The operating system reports ENOENT alike
 * for a missing command, a missing working directory and a missing interpreter. So this function checks which one it
 * is. The text holds paths but no argument and no value of the environment, which can be secrets (P12).
 */
export function explainSpawnFailure(error: unknown, program: Program): SpawnFailure {
  const code = errorCodeOf(error);
  const other = limits[code] ?? explainUser(code, program) ?? explainWorkingDirectory(program);
  if (other !== undefined) return { detail: other, isNotFound: false };
  const path = locate(program);
  if (path === undefined && isMissing(code, program))
    return { detail: explainMissingCommand(program), isNotFound: true };
  const detail = (path && explainCommand(code, path, program)) ?? explainOther(code, program.command);
  return { detail, isNotFound: false };
}

/**
 * Whether the error means that there is no such command, if no file was found. The operating system reports EACCES for a
 * name that is in no folder of PATH, if one of these folders cannot be entered: often root's, after `su` or `sudo`.
 */
const isMissing = (code: string, { command }: Program): boolean =>
  code === 'ENOENT' || code === 'ENOTDIR' || (code === 'EACCES' && !command.includes('/'));

/** The name of a setting, in the form the operator wrote it. */
const nameSetting = (key: 'cwd' | 'user', { isOnCommandLine = false }: Program): string =>
  isOnCommandLine ? settingFlags[key] : `"${key}"`;

const settingFlags = { cwd: '--cwd', user: '--defaults.process.user' };

/** Where the operator writes the command, as a phrase for a sentence. */
const describeCommandPosition = ({ isOnCommandLine = false }: Program): string =>
  isOnCommandLine ? 'after "--"' : 'as "command"';

function explainUser(code: string, program: Program): string | undefined {
  const { command, uid, gid } = program;
  if (uid === undefined && gid === undefined) return undefined;
  if (code === 'EPERM')
    return `The gateway is not allowed to start programs as another user. Run the gateway as root, or remove ${nameSetting('user', program)}.`;
  if (code === 'EACCES')
    return `The user of ${nameSetting('user', program)} may not run the command ${command}, or may not enter its folder. Grant the user access.`;
  return undefined;
}

function explainWorkingDirectory(program: Program): string | undefined {
  if (program.cwd === undefined) return undefined;
  const path = resolve(program.cwd);
  const setting = nameSetting('cwd', program);
  if (!existsSync(path)) return `The working directory ${path} does not exist. Create it, or correct ${setting}.`;
  if (!isDirectory(path)) return `The working directory ${path} is not a directory. Correct ${setting}.`;
  if (!isExecutable(path))
    return `The gateway's user may not enter the working directory ${path}. Grant the user access.`;
  return undefined;
}

function explainCommand(code: string, path: string, program: Program): string | undefined {
  const position = describeCommandPosition(program);
  if (isDirectory(path)) return `The command ${path} is a directory. Name the program in it ${position}.`;
  if (!isExecutable(path))
    return `The command ${path} is not executable. Run chmod +x on it, or name its interpreter ${position} with the file as an argument.`;
  if (code === 'ENOENT') return explainMissingInterpreter(path);
  if (code === 'ENOEXEC')
    return `The command ${path} is neither a program for this machine nor a script that starts with #!. Correct the command.`;
  return undefined;
}

const explainOther = (code: string, command: string): string =>
  code === 'EACCES'
    ? `The gateway's user may not run the command ${command}, or may not enter its folder. Grant the user access.`
    : `The command ${command} could not be started (${code}).`;

function explainMissingCommand(program: Program): string {
  const { command, env, isOnCommandLine = false } = program;
  // A URL would otherwise be treated as a file in a folder called "http:".
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(command))
    return 'The command is a URL. On the command line, write a URL without "--". In a file, write it as "url".';
  const position = describeCommandPosition(program);
  const advice = isOnCommandLine ? 'write each argument as a separate word' : 'arguments belong in "args"';
  const hint = /\s/.test(command) ? ` It contains white space: ${advice}.` : '';
  const similar = similarPrograms(command, env['PATH'] ?? defaultPath);
  const meant = similar.length === 0 ? '' : ` Did you mean ${similar.join(' or ')}?`;
  return command.includes('/')
    ? `The command ${command} does not exist. Install it, or correct the command ${position}.${hint}`
    : `The command ${command} was not found in PATH.${meant} Install it, or write its full path ${position}.${hint} PATH is ${env['PATH'] ?? 'not set'}.`;
}

function explainMissingInterpreter(path: string): string {
  const interpreter = readInterpreter(path);
  if (interpreter?.endsWith('\r'))
    return `The script ${path} has Windows line ends (CR LF), so the system looks for an interpreter whose name ends with CR. Save the script with LF line ends, for example with dos2unix.`;
  return interpreter === undefined
    ? `The program ${path} exists, but its loader does not, because the program was built for another system. Install a build for this system.`
    : `The script ${path} exists, but its interpreter ${interpreter} does not. Install the interpreter, or correct the first line of the script.`;
}
