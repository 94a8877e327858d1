import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { PackageProgram, Packages, RunTool } from '../../app/features/servers.ts';
import { nameOfPackageRequest, type PackageRequest } from '../../config/servers/package-request.ts';
import { type Installed, installFromNpm, unscoped } from './install-from-npm.ts';
import { installFromPypi } from './install-from-pypi.ts';
import { PackageError } from './package-error.ts';
import { isComplete, keyOf, type Pin, readPin, writePin } from './pin.ts';

/** Installations use a network and a processor, so only so many run at once (P8). The others wait. */
const maxAtOnce = 4;

/** An unfinished installation of whatever process is removed after this time, which is longer than any installation. */
const abandonedMs = 60 * 60 * 1000;

/** The beginning of the folders in which packages are installed. */
const draftPrefix = '.new-';

/** The beginning of those that this host installs. */
const ownPrefix = (): string => `${draftPrefix}${hostname()}-`;

/** The versions of a package that are kept: processes of the one before may still run. */
const maxVersions = 2;

/**
 * The installed packages of a folder. Several gateways may use one folder: each installs into a folder of its own, which is
 * then renamed as a whole, and the first one counts. An installation that is cut off leaves only such a folder behind, which
 * the next gateway removes at its start.
 */
export class PackageCache implements Packages {
  readonly folder: string;
  readonly #running = new Map<string, Promise<PackageProgram>>();
  readonly #waiting: (() => void)[] = [];
  readonly #drafts = new Set<string>();
  #active = 0;
  #swept: Promise<void> | undefined;

  constructor(folder: string) {
    this.folder = folder;
  }

  find(request: PackageRequest): PackageProgram | undefined {
    const folder = this.#folderOf(request);
    const pin = readPin(folder);
    return pin !== undefined && isComplete(folder, pin) ? programOf(folder, pin, request) : undefined;
  }

  versionOf(request: PackageRequest): string | undefined {
    const folder = this.#folderOf(request);
    const pin = readPin(folder);
    return pin !== undefined && isComplete(folder, pin) ? pin.version : undefined;
  }

  install(request: PackageRequest, run: RunTool): Promise<PackageProgram> {
    return this.#once(request, run, false);
  }

  upgrade(request: PackageRequest, run: RunTool): Promise<PackageProgram> {
    return this.#once(request, run, true);
  }

  #folderOf(request: PackageRequest): string {
    return join(this.folder, keyOf(request));
  }

  /** One installation at a time, for all who need the package. */
  async #once(request: PackageRequest, run: RunTool, isUpgrade: boolean): Promise<PackageProgram> {
    const key = keyOf(request);
    const found = isUpgrade ? undefined : this.find(request);
    if (found !== undefined) return found;
    const running = this.#running.get(key) ?? this.#begin(key, request, run, isUpgrade);
    await running;
    // Others may have asked for another program of the same package.
    return this.find(request) ?? running;
  }

  #begin(key: string, request: PackageRequest, run: RunTool, isUpgrade: boolean): Promise<PackageProgram> {
    const installing = this.#inTurn(() => this.#install(request, run, isUpgrade)).catch((cause: unknown) => {
      throw cause instanceof PackageError ? cause : this.#explain(cause, request);
    });
    const begun = installing.finally(() => this.#running.delete(key));
    this.#running.set(key, begun);
    return begun;
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#active >= maxAtOnce) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#active += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#active -= 1;
      else next();
    }
  }

  async #install(request: PackageRequest, run: RunTool, isUpgrade: boolean): Promise<PackageProgram> {
    await mkdir(this.folder, { recursive: true, mode: 0o755 });
    await this.sweep();
    const folder = this.#folderOf(request);
    const old = readPin(folder);
    // Files that were lost come back as they were.
    const wanted = isUpgrade || old === undefined ? request.wanted : old.version;
    const name = `${ownPrefix()}${process.pid}-${randomBytes(4).toString('hex')}`;
    const draft = join(this.folder, name);
    this.#drafts.add(name);
    await mkdir(draft, { mode: 0o755 });
    try {
      const installed = await installInto(draft, { ...request, wanted }, run);
      const pin = pinOf(request, installed);
      await mkdir(folder, { recursive: true, mode: 0o755 });
      // A package without the program is a fault of the configuration: nothing is kept of it.
      programOf(folder, pin, request);
      await rename(draft, join(folder, pin.folder));
      const counting = writePin(folder, pin, isUpgrade);
      if (counting !== pin) await rm(join(folder, pin.folder), { recursive: true, force: true });
      else if (isUpgrade) await removeOld(folder, [pin.folder, old?.folder]);
      return programOf(folder, counting, request);
    } finally {
      await rm(draft, { recursive: true, force: true });
      this.#drafts.delete(name);
    }
  }

  sweep(): Promise<void> {
    this.#swept ??= this.#removeLeft();
    return this.#swept;
  }

  async #removeLeft(): Promise<void> {
    if (statSync(this.folder, { throwIfNoEntry: false }) === undefined) return;
    for (const name of await readdir(this.folder)) {
      const path = join(this.folder, name);
      if (!name.startsWith(draftPrefix) || this.#isUnderWay(name, path)) continue;
      // What belongs to another user stays, until a gateway of that user starts.
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /** True for the folder of an installation that may go on. A process in a restarted container has the same number again. */
  #isUnderWay(name: string, path: string): boolean {
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (ageMs > abandonedMs) return false;
    if (!name.startsWith(ownPrefix())) return true; // of another host
    const pid = Number.parseInt(name.slice(ownPrefix().length), 10);
    return pid === process.pid ? this.#drafts.has(name) : isAlive(pid);
  }

  #explain(cause: unknown, request: PackageRequest): PackageError {
    const { message } = cause as Error;
    const name = nameOfPackageRequest(request);
    return new PackageError(
      `${name} could not be installed in ${this.folder}: ${message}. Check that the gateway may write there, or choose another folder (--packages.folder).`,
    );
  }
}

const installInto = (folder: string, request: PackageRequest, run: RunTool): Promise<Installed> =>
  request.registry === 'npm' ? installFromNpm(folder, request, run) : installFromPypi(folder, request, run);

const pinOf = ({ registry, name }: PackageRequest, { version, programs }: Installed): Pin => ({
  registry,
  name,
  version,
  folder: `${version.replaceAll(/[^A-Za-z0-9._+-]/g, '_')}-${randomBytes(4).toString('hex')}`,
  programs,
  installedAt: new Date().toISOString(),
});

async function removeOld(folder: string, kept: readonly (string | undefined)[]): Promise<void> {
  const versions = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
  const old = versions.filter(({ name }) => !kept.slice(0, maxVersions).includes(name));
  await Promise.all(old.map(({ name }) => rm(join(folder, name), { recursive: true, force: true })));
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The command that starts a program of an installed package. Throws a `PackageError` if it is not clear which. */
function programOf(folder: string, pin: Pin, request: PackageRequest): PackageProgram {
  const file = join(folder, pin.folder, fileOf(pin, request));
  const isNode = pin.registry === 'npm';
  const programs = join(folder, pin.folder, isNode ? join('node_modules', '.bin') : join('venv', 'bin'));
  const { name, version } = pin;
  const common = { name, version, programs };
  const interpreter = interpreterOf(file, isNode);
  if (interpreter === undefined) return { ...common, command: file, args: request.args };
  const command = interpreter === 'python' ? join(programs, 'python') : interpreter;
  return { ...common, command, args: [...interpreterArguments(file), file, ...request.args] };
}

/** As npx and uvx choose: the program with the name that was given, or that of the package, or the only one. */
function fileOf({ programs, name, registry }: Pin, { program }: PackageRequest): string {
  const names = Object.keys(programs);
  const [only, ...others] = new Set(Object.values(programs));
  const asked = program ?? unscoped(name);
  const found = Object.hasOwn(programs, asked) ? programs[asked] : undefined;
  if (found !== undefined) return found;
  if (names.length === 0)
    throw new PackageError(`The package ${name} has no program that can be started, so it is not a server.`);
  if (program === undefined && only !== undefined && others.length === 0) return only;
  const example = registry === 'npm' ? `npx --package=${name} ${names[0]}` : `uvx --from ${name} ${names[0]}`;
  throw new PackageError(
    program === undefined
      ? `The package ${name} has several programs: ${names.join(', ')}. Name one of them, as in: ${example}`
      : `The package ${name} has no program ${program}. It has ${names.join(', ')}.`,
  );
}

/** The first bytes of a program say how it is started. */
const headBytes = 512;

function headOf(file: string): string {
  try {
    const opened = openSync(file, 'r');
    try {
      const bytes = Buffer.alloc(headBytes);
      return bytes.toString('latin1', 0, readSync(opened, bytes));
    } finally {
      closeSync(opened);
    }
  } catch {
    return ''; // while a package is installed, its program is elsewhere
  }
}

/** The interpreter of a program, started directly, so that no shell or `env` is between; undefined for a binary. */
function interpreterOf(file: string, isNode: boolean): 'node' | 'python' | undefined {
  const head = headOf(file);
  // The first line of a program of Python names a folder that was renamed.
  if (!isNode) return head.startsWith('#!') && head.includes('python') ? 'python' : undefined;
  const [line = ''] = head.split('\n', 1);
  return /^#!.*\bnode\b/.test(line) || (!line.startsWith('#!') && /\.[cm]?js$/.test(file)) ? 'node' : undefined;
}

/** The options of Node.js in a first line such as `#!/usr/bin/env -S node --no-warnings`. */
const interpreterArguments = (file: string): readonly string[] =>
  /^#!.*\bnode +(--?\S.*?)\s*$/.exec(headOf(file).split('\n', 1)[0] ?? '')?.[1]?.split(/\s+/) ?? [];
