import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withDeadline } from '../support/wait-for.ts';

/** A server of ours that the gateway did not start. */
export interface RemoteServer {
  readonly url: string;
  /** Cuts every connection and forgets every session (`sse` and `http`). */
  restart(): void;
  /** How many sessions have begun (`http` only). */
  sessions(): number;
  /** How many of them their clients have ended. */
  ended(): number;
  stop(): Promise<void>;
}

/** Made by `bundled-fixtures.ts`, or else the source. */
const folder = process.env['TEST_FIXTURES'];
const program =
  folder === undefined
    ? fileURLToPath(new URL('remote-server.mjs', import.meta.url))
    : join(folder, 'remote-server.cjs');

/** Starts `remote-server.mjs`. Whoever starts it stops it. */
export async function startRemoteServer(...args: readonly string[]): Promise<RemoteServer> {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await withDeadline(once(child.stdout, 'data'), { what: 'the address of the server' });
  const lines = () => output.trimEnd().split('\n');
  return {
    url: lines()[0] ?? '',
    sessions: () => lines().filter((line) => line === 'session').length,
    ended: () => lines().filter((line) => line === 'ended').length,
    restart: () => void child.kill('SIGUSR2'),
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** The arguments that put a gateway in front of it. */
export const argumentsFor = (url: string): string[] => [url];
