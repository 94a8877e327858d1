import type { BackendEnd } from '../../backend/backend.ts';

/** Help for a server that ended before it answered. `check`, the log and the status page use the same words. */
export const helpIfEnded =
  'Run the command manually to see what is missing. The server inherits only PATH, HOME and a few other variables; add more with --env (in the file: "env").';

/** Help for a server that does not answer. */
export const helpIfSilent =
  'A STDIO server must answer on stdout. If the server listens on a port, configure its URL instead. If it starts slowly, for example on the first run of npx, raise --defaults.timeouts.start.';

/** Adds the command that shows the output of the server, for readers who have not seen it. */
export const withCheck = (help: string): string => `${help} Run mcp-gangway check to see its output.`;

/** Help for a backend that ended before it answered; undefined if its detail has the help, or none is known. */
export const helpOfEnd = ({ reason }: BackendEnd): string | undefined =>
  reason === 'exited' ? withCheck(helpIfEnded) : undefined;
