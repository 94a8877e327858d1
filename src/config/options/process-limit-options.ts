import type { ReportIssue } from '../issues.ts';
import { optionalInteger, optionalSize } from './option-kinds.ts';

/** 2 ** 32 - 1 means "leave unchanged" to setresuid(2), so it is not a valid id. */
const largestId = 2 ** 32 - 2;

/** Options for the user and the memory of a STDIO server's processes; a part of `serverOptions`. */
export const processLimitOptions = {
  uid: optionalInteger(
    [0, largestId],
    'Numeric user id of a STDIO server. Requires --defaults.process.gid and a gateway that runs as root.',
  ),
  gid: optionalInteger([0, largestId], 'Numeric group id of a STDIO server. The server gets no other groups.'),
  maxMemoryBytes: optionalSize(
    [1, Number.MAX_SAFE_INTEGER],
    'Maximum total resident memory of all processes of a STDIO server (Linux). Above this limit, the processes are killed and the server is started again.',
  ),
} as const;

/**
 * Checks that a server with a user has a group too: otherwise it would keep the group of the gateway, usually root's.
 */
export function checkUser(
  { uid, gid }: { readonly uid: number | undefined; readonly gid: number | undefined },
  path: string,
  report: ReportIssue,
): void {
  if (uid !== undefined && gid === undefined)
    report(
      path,
      (nameOf) =>
        `needs ${nameOf('gid')} as well: without it, the server would keep the group of the gateway; set both`,
    );
}
