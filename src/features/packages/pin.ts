import { hash, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PackageRequest } from '../../config/servers/package-request.ts';
import { isObject } from '../../core/util/is-object.ts';

/** What is installed of a package: a version, until the operator asks for another one. */
export interface Pin {
  readonly registry: PackageRequest['registry'];
  readonly name: string;
  readonly version: string;
  /** The folder beside the file of the pin. */
  readonly folder: string;
  /** The programs of the package by name, as paths below `folder`. */
  readonly programs: Readonly<Record<string, string>>;
  readonly installedAt: string;
}

/** The file of the pin, in the folder of what was asked for. */
const pinFile = 'pin.json';

/** File systems allow 255 bytes. */
const maxKeyLength = 180;

/** Other characters are escaped in URLs, and some servers take the path of their own URL for that of their file. */
const unsafe = /[^A-Za-z0-9._@+-]/g;

/** The name of the folder for what was asked for: one for each package, wanted version and way of installing. */
export function keyOf({ registry, name, extras, wanted, runsScripts }: PackageRequest): string {
  const scripts = runsScripts ? '' : '+no-scripts';
  const key = `${registry}-${name}${extras}@${wanted ?? 'latest'}${scripts}`;
  const readable = key.replace('/', '+');
  const safe = readable.replace(unsafe, '_').slice(0, maxKeyLength);
  // The digest keeps apart what looks the same without these characters.
  return safe === readable ? readable : `${safe}-${hash('sha256', key, 'hex').slice(0, 12)}`;
}

/** Reads the pin in a folder; undefined if there is none, or if it cannot be used. */
export function readPin(folder: string): Pin | undefined {
  try {
    const pin = JSON.parse(readFileSync(join(folder, pinFile), 'utf8')) as unknown;
    return isPin(pin) ? pin : undefined;
  } catch {
    return undefined; // expected: nothing is installed yet
  }
}

/** True if the files of the pin are there. */
export const isComplete = (folder: string, pin: Pin): boolean =>
  statSync(join(folder, pin.folder), { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Writes a pin as a whole. Several gateways may do so at the same time.
 * @returns the pin that counts: another one's if that was first and `replaces` is false
 */
export function writePin(folder: string, pin: Pin, replaces: boolean): Pin {
  const draft = join(folder, `${pinFile}.${randomBytes(6).toString('hex')}.new`);
  writeFileSync(draft, `${JSON.stringify(pin, undefined, 2)}\n`, { flag: 'wx' });
  try {
    if (!replaces) {
      linkSync(draft, join(folder, pinFile));
      return pin;
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const first = readPin(folder);
    if (first !== undefined && isComplete(folder, first)) return first;
  } finally {
    if (!replaces) rmSync(draft, { force: true });
  }
  if (!replaces) return writePin(folder, pin, true);
  renameSync(draft, join(folder, pinFile));
  return pin;
}

/** A path that stays below its folder. */
const isInside = (path: unknown): path is string =>
  typeof path === 'string' && path !== '' && !path.startsWith('/') && !path.split('/').includes('..');

const isPin = (pin: unknown): pin is Pin =>
  isObject(pin) &&
  typeof pin['version'] === 'string' &&
  typeof pin['name'] === 'string' &&
  isInside(pin['folder']) &&
  isObject(pin['programs']) &&
  Object.values(pin['programs']).every(isInside);
