/** One fault in the configuration. */
export interface ConfigurationIssue {
  /** The location of the fault: `--port`, `GANGWAY_PORT`, `config.json: mcpServers.git.args[1]`. */
  readonly path: string;
  /** The fault and its remedy. The message never repeats a value, which may be a secret (P12). */
  readonly message: string;
  /** The position of the path in its file, from 1. */
  readonly position?: FilePosition | undefined;
}

/** A position in a file. Lines and columns count from 1. */
export interface FilePosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** One line for a person: `config.json:3:5: listen.port: must be …`. */
export function renderIssue({ path, message, position }: ConfigurationIssue): string {
  if (position === undefined) return `${path}: ${message}`;
  const { file, line, column } = position;
  return `${file}:${line}:${column}: ${path.slice(file.length + 2)}: ${message}`;
}

/** The name of an option in its source: `--tls-key`, `GANGWAY_TLS_KEY` in the environment, `listen.tls.key` in the file. */
export type NameOf = (path: string) => string;

/** The message of a fault. A message that names options uses the names of the source with the fault. */
export type IssueMessage = string | ((nameOf: NameOf) => string);

/** Renders a message with the option names of one source. */
export const renderIssueMessage = (message: IssueMessage, nameOf: NameOf): string =>
  typeof message === 'string' ? message : message(nameOf);

/** Adds a fault. Reading continues, so that all faults are reported at once. */
export type ReportIssue = (path: string, message: IssueMessage) => void;

/** Longer names are abbreviated, so that a fault stays one readable line. */
const maxShownLength = 64;

/** Shortens a name for a message or path. */
export function abbreviateName(name: string): string {
  return name.length > maxShownLength ? `${name.slice(0, maxShownLength)}…` : name;
}

/** The path of a member of an object (`.git`, `["a b"]`) or a list (`[1]`). */
export function memberPath(parent: string, key: PropertyKey): string {
  if (typeof key === 'number') return `${parent}[${key}]`;
  const name = abbreviateName(String(key));
  if (!/^[A-Za-z0-9_$-]+$/.test(name)) return `${parent}[${JSON.stringify(name)}]`;
  return parent === '' || parent.endsWith(': ') ? parent + name : `${parent}.${name}`;
}
