import type { BackendEnd } from '../../backend/backend.ts';

/** What to do about a server that ended before it answered: the same words in `check`, the log and on the status page. */
export const helpIfEnded =
  'Start it by hand to see what it lacks. It gets no other variables than PATH, HOME and the like, and what --env (in the file: "env") gives it.';

/** The same about one that does not answer. */
export const helpIfSilent =
  'A STDIO server answers on its stdout. One that listens on a port is given by its URL. If it takes long to start, as npx does the first time, raise --start-timeout-ms.';

/** The same for those who have not seen what it writes: where they do. */
export const withCheck = (help: string): string => `${help} mcp-gangway check shows what it writes.`;

/** What to do about a backend that ended before it answered; undefined where its detail says so, or nobody knows. */
export const helpOfEnd = ({ reason }: BackendEnd): string | undefined =>
  reason === 'exited' ? withCheck(helpIfEnded) : undefined;
