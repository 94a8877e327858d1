import { isAbsolute } from 'node:path';
import { errorCodeOf } from '../../core/util/text/error-code.ts';
import type { ReportIssue } from '../issues.ts';

/** A file that an option names, and the location of the option: `--config`, `GANGWAY_CONFIG`. */
export interface NamedFile {
  readonly name: string;
  readonly place: string;
  /** What makes such a file, if a command does. */
  readonly maker?: string;
}

/** Reads the text of a file. Reports a fault at the option that names the file, and returns undefined then. */
export function readNamedFile(
  { name, place, maker }: NamedFile,
  { readFile, report }: { readonly readFile: (path: string) => string; readonly report: ReportIssue },
): string | undefined {
  if (/^\s*[{[]/.test(name)) {
    report(place, 'must be the path of a file, but is the text of one; write the text into a file, and name the file');
    return undefined;
  }
  try {
    return readFile(name);
  } catch (error) {
    report(place, `names ${describeUnreadable(error, name, maker)}`);
    return undefined;
  }
}

/**
 * Says why a file cannot be read, and what to do: `does not exist; correct the path`. The path itself is not repeated.
 * @param base what a relative path is relative to
 * @param maker the command that makes such a file, if there is one
 */
export function whyUnreadable(error: unknown, path: string, base = 'the current folder', maker?: string): string {
  const code = errorCodeOf(error);
  if (code === 'ENOENT')
    return `does not exist; create it${maker === undefined ? '' : ` with ${maker}`}, or correct the path${isAbsolute(path) ? '' : `, which is relative to ${base}`}`;
  if (code === 'EISDIR') return 'is a folder; name a file in that folder';
  // In a container, the user of the gateway is not the one who wrote the file.
  const uid = code === 'EACCES' ? process.getuid?.() : undefined;
  return `cannot be read${uid === undefined ? '' : ` by user ${uid}`} (${code}); check its permissions`;
}

/** Describes a file that cannot be read. A path is shown only if it looks like one: it may be the text of a file (P12). */
export const describeUnreadable = (error: unknown, path: string, maker?: string): string =>
  isFileName(path)
    ? `${path}, which ${whyUnreadable(error, path, undefined, maker)}`
    : `a file that ${whyUnreadable(error, path)}; if this is the text of a file, name a file with that text`;

const isFileName = (name: string): boolean =>
  /^[^\s{}"'=,]{1,200}\.[a-z]{2,5}$|^\.{0,2}\/[a-z0-9._/-]{1,200}$/.test(name);
