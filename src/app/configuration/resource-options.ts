import type { Report } from './fault.ts';
import { integer, optional } from './option-kinds.ts';

/** The number that says "leave it as it is" to setuid(2) is none of a user. */
const largestId = 2 ** 32 - 2;

/** Options of one STDIO server that say what its processes may use. */
export const resourceOptions = {
  uid: optional([0, largestId], 'Number of the user as whom a STDIO server runs, with gid; only root may choose one.'),
  gid: optional([0, largestId], 'Number of the group with which it runs, and with no other.'),
  nice: integer(0, [0, 19], 'By how much a STDIO server gives way to other processes (nice).'),
  maxMemoryBytes: optional(
    [1, Number.MAX_SAFE_INTEGER],
    'Bytes of memory that the processes of a STDIO server may use together (resident, Linux); beyond, they are killed and the server is restored.',
  ),
  maxAddressSpaceBytes: optional(
    [1, Number.MAX_SAFE_INTEGER],
    'Bytes of address space of each of its processes (prlimit); some runtimes, as Node.js, reserve far more than they use.',
  ),
  maxOpenFiles: optional([3, 2 ** 31 - 1], 'Files that each of its processes may have open (prlimit).'),
  maxProcesses: optional(
    [1, 2 ** 31 - 1],
    'Processes and threads that its user may have in all (prlimit); of use with a uid of its own.',
  ),
  maxCpuSeconds: optional(
    [1, 2 ** 31 - 1],
    'Seconds of CPU time after which each of its processes is killed (prlimit).',
  ),
} as const;

/** A user without a group of its own would keep the group of the gateway, most often root's. */
export function checkUser(
  { uid, gid }: { readonly uid: number | undefined; readonly gid: number | undefined },
  path: string,
  report: Report,
): void {
  if (uid !== undefined && gid === undefined)
    report(path, (nameOf) => `has ${nameOf('uid')} without ${nameOf('gid')}: give both`);
}
