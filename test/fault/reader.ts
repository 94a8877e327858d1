import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { root } from '../support/gateway.ts';
import type { Session } from '../support/http-client.ts';

/** A client of one stream in a process of its own. */
export interface Reader {
  /** What it has read so far. */
  bytes(): number;
  /** Resolves with the bytes read when the stream has ended. */
  readonly ended: Promise<number>;
  end(): void;
}

/**
 * Opens a stream in another process, so that what it reads does not slow down the one that measures: the GET stream, or
 * the answer to a POST of `body`. Resolves when the head of the answer has come.
 */
export async function openReader(
  url: string,
  session: Session,
  how: 'reads' | 'never reads',
  body?: object,
  accept?: string,
): Promise<Reader> {
  const headers = { accept, 'mcp-session-id': session.id, 'mcp-protocol-version': session.version };
  const what = JSON.stringify({ url, headers, body, how });
  const child = spawn(process.execPath, [`${root}test/fixtures/stream-reader.mjs`, what], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let bytes = 0;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    bytes = Number(text.trim().split('\n').at(-1));
  });
  const ended = once(child, 'exit').then(() => bytes);
  await Promise.race([once(child.stdout, 'data'), ended]);
  return { bytes: () => bytes, ended, end: () => void child.kill('SIGKILL') };
}
