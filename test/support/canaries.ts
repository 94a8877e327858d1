import { readdirSync, readFileSync } from 'node:fs';

/**
 * The whole test run carries recognisable secrets: in the environment of every gateway, in headers and messages of the
 * plain clients, and in each session id and endpoint token. The helpers that stop a gateway or a Redis, or read an
 * answer, search for secrets in forbidden places (P12). A leak fails the test in which it happens.
 */

/** No other text in the run contains this. */
const marker = 'kZ4nArYx7';

/** The kinds of secrets by the place that carries them. `content` may be logged at debug, where that is documented. */
export type CanaryKind = 'environment' | 'header' | 'content' | 'redis-password' | 'url-credentials' | 'api-key';

/** The secret of a kind. It has only letters and digits, so that no encoding changes it. */
export const canary = (kind: CanaryKind): string => `${marker}${kind.replace('-', 'Q')}0123456789`;

/** Variables of a gateway operator's environment, none of which may reach a server. */
export const environmentCanaries: Readonly<Record<string, string>> = {
  AWS_SECRET_ACCESS_KEY: canary('environment'),
  GANGWAY_TEST_PASSWORD: canary('environment'),
};

/** A header of every request of the plain clients. Its value must reach no server and no log. */
export const headerCanaries = { Cookie: `session=${canary('header')}` } as const;

/** The lengths and characters of the session ids and tokens that the gateway issues. */
const idForm = /[A-Za-z0-9_-]{43}/g;
const longRun = /[A-Za-z0-9_-]{43,}/g;
const issued = new Set<string>();

/** Registers a session id or endpoint token that a client received. */
export function noteIssued(id: unknown): void {
  if (typeof id === 'string' && id.length === 43) issued.add(id);
}

/** The secrets in a text, each with its surroundings. */
export function leaksIn(text: string, { allowsContent = false } = {}): string[] {
  const leaks: string[] = [];
  for (let at = text.indexOf(marker); at >= 0; at = text.indexOf(marker, at + 1)) {
    if (allowsContent && text.startsWith(canary('content'), at)) continue;
    leaks.push(around(text, at));
  }
  for (const run of text.match(longRun) === null ? [] : text.matchAll(longRun)) {
    const isIssued = issued.has(run[0]) || (run[0].length > 43 && windowsOf(run[0]).some((id) => issued.has(id)));
    if (isIssued) leaks.push(around(text, run.index));
  }
  return leaks;
}

/** Finds an id between other characters of its kind, as in `session=<id>_x`. */
function windowsOf(run: string): string[] {
  if (run.length > 512) return [...run.matchAll(idForm)].map(([id]) => id);
  return Array.from({ length: run.length - 42 }, (_, at) => run.slice(at, at + 43));
}

const around = (text: string, at: number): string => text.slice(Math.max(0, at - 120), at + 160);

/** Throws if a text contains a secret. */
export function expectNoLeak(where: string, text: string, how?: { readonly allowsContent?: boolean }): void {
  const [leak, ...more] = leaksIn(text, how);
  if (leak === undefined) return;
  throw new Error(`A secret has leaked into ${where} (and ${more.length} more): …${leak}…`);
}

/** Throws if a child process has a secret in its environment or on its command line; only on Linux. */
export function expectNoLeakInChildren(pid: number): void {
  const own = readProc(`/proc/${pid}/cmdline`);
  for (const child of childrenOf(pid)) {
    if (readProc(`/proc/${child}/cmdline`) === own) continue; // about to become a server: it is a copy of its parent until then
    for (const part of ['environ', 'cmdline']) {
      expectNoLeak(`${part} of a server's process`, readProc(`/proc/${child}/${part}`));
    }
  }
}

function childrenOf(pid: number): string[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    return tasks.flatMap((task) => readProc(`/proc/${pid}/task/${task}/children`).split(' ').filter(Boolean));
  } catch {
    return []; // the process has ended, or there is no /proc
  }
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // the process has ended meanwhile
  }
}
