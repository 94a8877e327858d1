/** How a process ended: exactly one of the two is set, or none if the starter ended before it. */
export interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Meaning of these codes for the usual wrappers (`sh`, `env`, `npx`) and the kernel. */
const hints: Readonly<Record<string, string>> = {
  126: ' (a command that the server tried to run is not executable)',
  127: ' (a command that the server tried to run was not found)',
  SIGKILL: ' (often by the kernel, because memory ran out)',
};

/** Returns one sentence for the operator about a server that ended by itself. */
export const describeProcessExit = ({ exitCode, signal }: ProcessExit): string =>
  signal !== null
    ? `The server was killed by ${signal}${hints[signal] ?? ''}.`
    : exitCode === null
      ? 'The server ended. Its exit code is not known, because the process that had started it ended before.'
      : `The server exited with code ${exitCode}${hints[String(exitCode)] ?? ''}.`;
