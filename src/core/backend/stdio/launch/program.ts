// src/core/backend/stdio/launch: the commands of STDIO servers, their environment, and why one does not start.

/** A program of the operator's configuration. Nothing in it ever comes from a client. */
export interface Program {
  /** A path, or a name that is searched in the PATH of `env`. */
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  /** True if the program was given on the command line, where operators are to correct it; else it came from a file. */
  readonly isOnCommandLine?: boolean | undefined;
  /** The whole environment of the process; see `childEnvironment`. */
  readonly env: Readonly<Record<string, string>>;
  /** User and group that the program runs as, with no other groups; by default the gateway's. */
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
}
