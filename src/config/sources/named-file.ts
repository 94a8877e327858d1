import { errorCodeOf } from '../../util/text/error-code.ts';
import type { ReportIssue } from '../issues.ts';

/** A file that an option names, and the location of the option: `--config`, `GANGWAY_CONFIG`. */
export interface NamedFile {
  readonly name: string;
  readonly place: string;
}

/** Reads the text of a file. Reports a fault at the option that names the file, and returns undefined then. */
export function readNamedFile(
  { name, place }: NamedFile,
  { readFile, report }: { readonly readFile: (path: string) => string; readonly report: ReportIssue },
): string | undefined {
  if (/^\s*[{[]/.test(name)) {
    report(place, 'must be the path of a file, but is the text of one; write the text into a file, and name the file');
    return undefined;
  }
  try {
    return readFile(name);
  } catch (error) {
    const code = errorCodeOf(error);
    const shown = isFileName(name) ? `${name}, which` : 'a file that';
    report(
      place,
      code === 'ENOENT'
        ? `names ${shown} does not exist; correct the path, which is relative to the current folder`
        : code === 'EISDIR'
          ? `names ${isFileName(name) ? `${name}, which is a folder` : 'a folder'}; name a file in that folder`
          : `names ${shown} cannot be read${byUser(code)} (${code}); check its permissions`,
    );
    return undefined;
  }
}

/** In a container, the user of the gateway is not the one who wrote the file. */
const byUser = (code: string): string => {
  const uid = process.getuid?.();
  return code === 'EACCES' && uid !== undefined ? ` by user ${uid}` : '';
};

/** A path is shown only if it looks like one: a user can also put the content of the file, with secrets, there (P12). */
const isFileName = (name: string): boolean =>
  /^[^\s{}"'=,]{1,200}\.[a-z]{2,5}$|^\.{0,2}\/[a-z0-9._/-]{1,200}$/.test(name);
