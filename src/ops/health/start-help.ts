import type { BackendEnd } from '../../backend/backend.ts';

/** What to do about a server that ended before it answered: the same words in `check`, the log and on the status page. */
export const helpIfEnded =
  'Run the command by hand to see what is missing. The server inherits only PATH, HOME and a few other variables; add more with --env (in the file: "env").';

/** The same about one that does not answer. */
export const helpIfSilent =
  'A STDIO server must answer on stdout. If the server listens on a port, configure its URL instead. If it starts slowly, as with the first npx, raise --start-timeout-ms.';

/** The same for those who have not seen what it writes: where they do. */
export const withCheck = (help: string): string => `${help} Run mcp-gangway check to see its output.`;

/** What to do about a backend that ended before it answered; undefined where its detail says so, or nobody knows. */
export const helpOfEnd = ({ reason }: BackendEnd): string | undefined =>
  reason === 'exited' ? withCheck(helpIfEnded) : undefined;
