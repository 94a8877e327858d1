/** What a command prints, if it has not printed it, and its exit code. */
export interface Outcome {
  readonly stdout?: string;
  readonly stderr?: string;
  readonly exitCode: number;
}

/** The exit code of a command that failed. 0 is success. */
export const failed = 1;

/** The exit code for an invalid configuration. */
export const misconfigured = 2;

/** The outcome of a command that prints a text. */
export const printed = (stdout: string): Outcome => ({ stdout, exitCode: 0 });

/** The outcome of a command that cannot do what it should. */
export const refused = (why: string, exitCode = failed): Outcome => ({ stderr: `mcp-gangway: ${why}\n`, exitCode });
