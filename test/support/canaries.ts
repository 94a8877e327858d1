import { readdirSync, readFileSync } from 'node:fs';

/**
 * The whole test run carries secrets that can be recognised: in the environment of every gateway, in headers and messages of
 * the plain clients, and each session id and endpoint token that a client is given. Whoever ends a gateway or a Redis, or reads
 * an answer, looks for them where they have no business (P12), so that a leak fails the test in which it happens.
 */

/** Nothing else in the run has this text. */
const marker = 'kZ4nArYx7';

/** Where a secret is carried, and so what a leak of it means. `content` may be logged at debug, where that is documented. */
export type CanaryKind = 'environment' | 'header' | 'content' | 'redis-password' | 'url-credentials' | 'api-key';

/** The secret of this kind: letters and digits, so that no encoding on its way changes it. */
export const canary = (kind: CanaryKind): string => `${marker}${kind.replace('-', 'Q')}0123456789`;

/** Variables that the environment of a gateway's operator could have; none is for its servers. */
export const environmentCanaries: Readonly<Record<string, string>> = {
  AWS_SECRET_ACCESS_KEY: canary('environment'),
  GANGWAY_TEST_PASSWORD: canary('environment'),
};

/** A header that every request of the plain clients has, and that is for nobody. */
export const headerCanaries = { Cookie: `session=${canary('header')}` } as const;

/** Session ids and tokens as the gateway gives them: each of so many of these characters. */
const idForm = /[A-Za-z0-9_-]{43}/g;
const longRun = /[A-Za-z0-9_-]{43,}/g;
const issued = new Set<string>();

/** A session id or endpoint token that a client was given. */
export function noteIssued(id: unknown): void {
  if (typeof id === 'string' && id.length === 43) issued.add(id);
}

/** The secrets in a text, each with what stands around it, for who looks for the place. */
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

/** An id behind or before other characters of its kind, as in `session=<id>_x`. */
function windowsOf(run: string): string[] {
  if (run.length > 512) return [...run.matchAll(idForm)].map(([id]) => id);
  return Array.from({ length: run.length - 42 }, (_, at) => run.slice(at, at + 43));
}

const around = (text: string, at: number): string => text.slice(Math.max(0, at - 120), at + 160);

/** Throws if there is a secret in a text. */
export function expectNoLeak(where: string, text: string, how?: { readonly allowsContent?: boolean }): void {
  const [leak, ...more] = leaksIn(text, how);
  if (leak === undefined) return;
  throw new Error(`A secret has leaked into ${where} (and ${more.length} more): …${leak}…`);
}

/** Throws if a process that this one has started has a secret in its environment or on its command line; only on Linux. */
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
    return []; // it has ended, or there is no /proc here
  }
}

function readProc(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return ''; // it has ended meanwhile
  }
}
