import { accessSync, closeSync, constants, existsSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Program } from './program.ts';

/** Directories that the operating system searches for a command without PATH. */
export const defaultPath = '/usr/bin:/bin';

/**
 * Returns the paths that a command can mean. A path is relative to the working directory; a name is searched in PATH.
 */
const candidates = ({ command, cwd = '.', env }: Program): string[] => {
  const folders = command.includes('/') ? [''] : (env['PATH'] ?? defaultPath).split(':');
  return folders.map((folder) => resolve(cwd, join(folder, command)));
};

/** Returns the first file with the command's name, whether or not it can be run. For messages. */
export const locate = (program: Program): string | undefined => candidates(program).find((path) => existsSync(path));

/**
 * Returns the interpreter that the first line of a script names; undefined for any other file. As for the operating
 * system, a CR before the end of the line belongs to the name.
 */
export const readInterpreter = (path: string): string | undefined =>
  /^#![ \t]*([^ \t\n\0]+)/.exec(firstBytes(path))?.[1];

export const isDirectory = (path: string): boolean => stat(path)?.isDirectory() ?? false;

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function stat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined; // expected: some directories in PATH may not be readable
  }
}

function firstBytes(path: string): string {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(256);
      return bytes.toString('latin1', 0, readSync(file, bytes));
    } finally {
      closeSync(file);
    }
  } catch {
    return ''; // executable but not readable: the first line stays unknown
  }
}
