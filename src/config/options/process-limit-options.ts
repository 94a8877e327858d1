import type { ReportIssue } from '../issues.ts';
import { integer, optional } from './option-kinds.ts';

/** The number that says "leave it as it is" to setuid(2) is none of a user. */
const largestId = 2 ** 32 - 2;

/** Options of one STDIO server that say what its processes may use. */
export const processLimitOptions = {
  uid: optional([0, largestId], 'Numeric user id of a STDIO server. Requires --gid and a gateway that runs as root.'),
  gid: optional([0, largestId], 'Numeric group id of a STDIO server, which gets no other group.'),
  nice: integer(0, [0, 19], 'Niceness of a STDIO server: a higher value gives other processes priority.'),
  maxMemoryBytes: optional(
    [1, Number.MAX_SAFE_INTEGER],
    'Maximum memory of all processes of a STDIO server together (resident bytes, Linux). Above it, the processes are killed and the server is restored.',
  ),
  maxAddressSpaceBytes: optional(
    [1, Number.MAX_SAFE_INTEGER],
    'Maximum address space of each process of a STDIO server in bytes (prlimit). Some runtimes, such as Node.js, reserve far more than they use.',
  ),
  maxOpenFiles: optional([3, 2 ** 31 - 1], 'Maximum number of open files of each process of a STDIO server (prlimit).'),
  maxProcesses: optional(
    [1, 2 ** 31 - 1],
    'Maximum number of processes and threads of the user of a STDIO server (prlimit). Use it with a separate --uid.',
  ),
  maxCpuSeconds: optional(
    [1, 2 ** 31 - 1],
    'CPU time in seconds after which each process of a STDIO server is killed (prlimit).',
  ),
} as const;

/** A user without a group of its own would keep the group of the gateway, most often root's. */
export function checkUser(
  { uid, gid }: { readonly uid: number | undefined; readonly gid: number | undefined },
  path: string,
  report: ReportIssue,
): void {
  if (uid !== undefined && gid === undefined)
    report(path, (nameOf) => `has ${nameOf('uid')} without ${nameOf('gid')}; set both`);
}
