/** One thing that is wrong in the configuration. */
export interface ConfigurationIssue {
  /** Where it stands: `--port`, `GANGWAY_PORT`, `config.json: mcpServers.git.args[1]`. */
  readonly path: string;
  /** What is wrong and what would be right; never a value, which may be a secret (P12). */
  readonly message: string;
}

/** What a place calls an option: `--tls-key` on the command line, `GANGWAY_TLS_KEY` in the environment, `tlsKey` in the file. */
export type NameOf = (key: string) => string;

/** The message of a fault. One that names options takes their names from the place where the fault stands. */
export type IssueMessage = string | ((nameOf: NameOf) => string);

/** A message in the words of a place. */
export const renderIssueMessage = (message: IssueMessage, nameOf: NameOf): string =>
  typeof message === 'string' ? message : message(nameOf);

/** Adds a fault; reading goes on, so that all faults are told at once. */
export type ReportIssue = (path: string, message: IssueMessage) => void;

/** Names are shown up to this length, so that a fault stays one readable line. */
const maxShownLength = 64;

/** A name as it is shown in a message or path. */
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
