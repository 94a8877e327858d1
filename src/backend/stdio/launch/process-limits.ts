import { findTool } from './find-tool.ts';

/** Limits of each process of a server, as in setrlimit(2); undefined keeps the gateway's own limit. */
export interface ProcessLimits {
  readonly maxAddressSpaceBytes: number | undefined;
  readonly maxOpenFiles: number | undefined;
  /** Limit for all processes of the user that the server runs as. */
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

/**
 * Returns the flags for these limits, soft and hard alike, so that a server cannot raise them. None if nothing is
 * limited.
 */
export const limitFlags = (limits: ProcessLimits): string[] =>
  flags.flatMap(([key, flag]) => (limits[key] === undefined ? [] : [`--${flag}=${limits[key]}`]));

/**
 * Looks for a `nice` (POSIX) that works; see `findTool`. With it a program and its children run at lower priority from
 * the first moment on.
 */
export const findNice = (path: string | undefined): string | undefined =>
  findTool(path, 'nice', (file) => [...niceFlags(1), '--', file]);

/** Returns the flags for this niceness. */
export const niceFlags = (nice: number): string[] => ['-n', String(nice)];
