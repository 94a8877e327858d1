import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import { openAnswered } from './answered-session.ts';
import { type Gateway, root, startGateway } from './gateway.ts';
import type { PackageRegistry } from './package-registry.ts';

/** A package whose server tells its version. */
export const weather = { name: '@test/weather', version: '1.0.0' };

/** Starts a gateway that installs from the registry. */
export const startInstalling = (
  { env, folder }: PackageRegistry,
  args: readonly string[],
  more: Record<string, string> = {},
) => startGateway({ args: ['--packages.folder', folder, ...args], env: { ...env, ...more }, readyDeadlineMs: 120_000 });

/** Runs a command of the gateway to its end. */
export async function runCommand(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const child = spawn(process.execPath, [`${root}dist/main.js`, ...args], { env: { ...process.env, ...env } });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { stdout, stderr, code };
}

interface Told {
  readonly version: string;
  readonly args: readonly string[];
  readonly parent: number;
}

/** What a server tells of itself in a new session. */
export async function askServer(gateway: Gateway, path = '/mcp'): Promise<Told> {
  const session = await openAnswered(gateway.baseUrl + path);
  const answer = await session.request('tools/call', { name: 'version', arguments: {} });
  await session.delete();
  return JSON.parse(answer.json.result.content[0].text);
}

/** The files of installations that are not finished. */
export const draftsIn = async ({ folder }: PackageRegistry): Promise<string[]> =>
  existsSync(folder) ? (await readdir(folder)).filter((name) => name.startsWith('.new-')) : [];
