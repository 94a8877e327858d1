import { basename } from 'node:path';
import type { BackendEnd } from '../../backend/backend.ts';

/** Help for output with a known cause. The require stack is empty if the missing file is the one that Node.js runs. */
const knownOutput = [
  [/^npm \S+ code E404$/m, 'npm did not find the package. Correct its name.'],
  [
    /^ *requireStack: \[\]$/m,
    'Node.js did not find the file. Correct the path, which is relative to the working directory (--cwd).',
  ],
  [
    /EADDRINUSE|address already in use|database is locked|could not set lock|already running/i,
    'Another process of the server seems to run, perhaps that of another user, or of another gateway. Stop that process, or let users share it (--share all). Or configure the server so that it can run twice, such as with another port or data folder.',
  ],
] as const;

const helpOnVariables =
  'The server inherits only PATH, HOME and a few other variables; add more with --env (in the file: "env").';

/** Help for a server that ended before it answered. `check`, the log and the status page use the same words. */
export function helpIfEnded(output: readonly string[] = []): string {
  const known = knownOutput.find(([pattern]) => pattern.test(output.join('\n')))?.[1];
  if (known !== undefined) return known;
  return output.length === 0
    ? `Run the command manually to see what is missing. ${helpOnVariables}`
    : `Correct the cause that the server's output names. If the output names no cause, run the command manually. ${helpOnVariables}`;
}

/** Help for a server that does not answer. */
export const helpIfSilent =
  'A STDIO server must answer on stdout, and flush its output after each message. If the server listens on a port, configure its URL instead. If it starts slowly, for example on the first run of npx, raise --defaults.timeouts.start.';

/** Help for text on stdout with a known cause. */
const knownText = [
  [
    /^Content-Length: *\d/i,
    'The server puts a header before each message, as the Language Server Protocol does. A STDIO server of MCP writes each message as one line, without a header. Correct the server.',
  ],
  [
    /^[{[]$/,
    'The server writes a message over several lines. A STDIO server must write each message as one line. Correct the server.',
  ],
] as const;

/**
 * Help for a server that does not answer, but writes text to stdout that is not MCP.
 * @param lines what it wrote to stdout
 * @param isUnfinished true if the last of it had no line end
 */
export function helpForText(lines: readonly string[], isUnfinished: boolean): string {
  const known = knownText.find(([pattern]) => lines.some((line) => pattern.test(line)))?.[1];
  return known ?? (isUnfinished ? helpIfUnfinished : helpIfTalking);
}

/** Help for a server that does not answer, but writes text that is not MCP. */
const helpIfTalking = `If the text is a menu or a prompt, add the argument that starts the STDIO mode of the server. ${helpIfSilent}`;

/** Help for a server that writes to stdout, but ends no line. */
const helpIfUnfinished =
  'Each message of a STDIO server must end with a line feed (\\n), and the server must flush its output after it. Correct the server.';

/** Programs that run Python, or what is written in it. */
const pythonPrograms = /^(?:python[\d.]*|uvx?|pipx|poetry|fastmcp)(?:\.exe)?$|\.pyw?$/;

/** Adds to the help for a silent server what helps where Python runs it: Python holds back what is written to a pipe. */
export function helpForCommand(help: string, command: readonly string[]): string {
  const isSilent = help.includes('flush its output');
  const isPython = command.some((word) => pythonPrograms.test(basename(word)));
  return isSilent && isPython ? `${help} Python flushes only with PYTHONUNBUFFERED=1: set it with --env.` : help;
}

/** Help for a command that sends back what it is told. */
export const helpIfEchoing =
  'A terminal does this. Run the server without one: remove -t or --tty from docker, podman and kubectl (keep -i), and -t or -tt from ssh. If there is no terminal, the command is not an MCP server.';

/** Help for a server that has written nothing in the whole time, and whose launcher downloads packages. */
export const helpIfDownloading = (launcher: string): string =>
  `${launcher} has written nothing, so it may still be downloading the package. Check that this machine can reach the package registry (HTTPS_PROXY, for npx also npm_config_registry). If downloads are only slow, raise --defaults.timeouts.start.`;

/** Adds the command that shows the output of the server, for readers who have not seen it. */
export const withCheck = (help: string): string => `${help} Run mcp-gangway check to see its output.`;

/** Help for a backend that ended before it answered; undefined if its detail has the help, or none is known. */
export const helpOfEnd = ({ reason, lastOutput }: BackendEnd): string | undefined =>
  reason === 'exited' ? withCheck(helpIfEnded(lastOutput)) : undefined;
