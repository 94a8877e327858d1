import { findTool } from './find-tool.ts';

/** What each process of a server may use, as setrlimit(2) has it; undefined is as the gateway's own. */
export interface ProcessLimits {
  readonly maxAddressSpaceBytes: number | undefined;
  readonly maxOpenFiles: number | undefined;
  /** Of the user as whom it runs, in all. */
  readonly maxProcesses: number | undefined;
  readonly maxCpuSeconds: number | undefined;
}

const flags = [
  ['maxAddressSpaceBytes', 'as'],
  ['maxOpenFiles', 'nofile'],
  ['maxProcesses', 'nproc'],
  ['maxCpuSeconds', 'cpu'],
] as const satisfies readonly (readonly [keyof ProcessLimits, string])[];

/** The limits that need `prlimit`. */
export const limitOptions = flags.map(([key]) => key);

/** Looks for a `prlimit` (prlimit(1), util-linux) that works; see `findTool`. */
export const findPrlimit = (path: string | undefined): string | undefined =>
  process.platform === 'linux'
    ? findTool(path, 'prlimit', () => ['--nofile', '--output=SOFT', '--noheadings'])
    : undefined;

/** The flags for these limits, soft and hard alike: a server cannot raise them. None if nothing is limited. */
export const limitFlags = (limits: ProcessLimits): string[] =>
  flags.flatMap(([key, flag]) => (limits[key] === undefined ? [] : [`--${flag}=${limits[key]}`]));

/** Looks for a `nice` (POSIX) that works; see `findTool`. By it a program gives way from its first moment on, and all that it starts. */
export const findNice = (path: string | undefined): string | undefined =>
  findTool(path, 'nice', (file) => [...niceFlags(1), '--', file]);

/** The flags by which a program gives way so much. */
export const niceFlags = (nice: number): string[] => ['-n', String(nice)];
