import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { leaseMs, shortLeases } from '../cluster/fast.ts';
import { root } from '../support/gateway.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';

const requests = 8_000;
/** In the line of each request; with it they are more than the reader and the gateway hold. */
const requestId = 'r'.repeat(120);

/** What nobody reads until `read` is called. */
interface Unread {
  readonly stdio: 'pipe' | number;
  /** All that came so far. */
  read(): string;
}

function createPipe(): Unread & { started(child: ChildProcess): void } {
  const folder = mkdtempSync(join(tmpdir(), 'stalled-log-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  onTestFinished(() => {
    closeSync(reader);
    rmSync(folder, { recursive: true });
  });
  const buffer = Buffer.alloc(64 * 1024);
  let text = '';
  return {
    stdio: writer,
    started: () => closeSync(writer),
    read() {
      try {
        for (let length = readSync(reader, buffer); length > 0; length = readSync(reader, buffer))
          text += buffer.toString('utf8', 0, length);
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== 'EAGAIN') throw cause;
      }
      return text;
    },
  };
}

/** What Node.js gives a child, and systemd a service. */
function createSocket(): Unread & { started(child: ChildProcess): void } {
  let stderr: ChildProcess['stderr'];
  let text: string | undefined;
  return {
    stdio: 'pipe',
    started(child) {
      stderr = child.stderr;
    },
    read() {
      if (text === undefined) {
        text = '';
        stderr?.on('data', (chunk) => {
          text += chunk;
        });
      }
      return text;
    },
  };
}

/** Asks `/healthz` so often on one connection, ten times at once, and expects each answer. */
async function askOften(port: string, times: number): Promise<void> {
  const socket = connect(Number(port), '127.0.0.1').setEncoding('latin1');
  const request = `GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: ${requestId}\r\n\r\n`;
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  for (let asked = 0; asked < times; asked += 10) {
    text = '';
    socket.write(request.repeat(10));
    const isAnswered = () => text.split('HTTP/1.1 200 ').length === 11;
    while (!isAnswered()) await once(socket, 'data', { signal: AbortSignal.timeout(10_000) });
  }
  socket.destroy();
}

/** A gateway whose log nobody reads, after it has written more than fits anywhere. */
async function stalled(unread: ReturnType<typeof createPipe>, args: readonly string[] = []) {
  const server = [process.execPath, `${root}test/fixtures/children/mini-server.mjs`];
  const ports = ['--host', '127.0.0.1', '--port', '0', '--admin-port', '0'];
  const child = spawn(
    process.execPath,
    [`${root}dist/main.js`, ...ports, '--log-level', 'debug', ...args, '--', ...server],
    { stdio: ['ignore', 'pipe', unread.stdio] },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  unread.started(child);
  let banner = '';
  child.stdout?.on('data', (chunk) => {
    banner += chunk;
  });
  const base = await waitFor(() => /http:\/\/127\.0\.0\.1:\d+/.exec(banner)?.[0], { deadlineMs: 20_000 });
  const ask = async (path: string): Promise<number> => {
    const response = await fetch(`${base}${path}`, {
      headers: { 'x-request-id': requestId },
      signal: AbortSignal.timeout(10_000),
    });
    await response.arrayBuffer();
    return response.status;
  };
  await Promise.all(Array.from({ length: 20 }, () => askOften(new URL(base).port, requests / 20)));
  return { child, ask };
}

describe('[E-04] a log that nobody reads', () => {
  test.each([
    ['a pipe', createPipe],
    ['a socket', createSocket],
  ])(
    'on %s stops nothing: the gateway answers, keeps its lease, and says later what is missing',
    async (_, create) => {
      await using redis = await startRedis();
      const unread = create();
      const { child, ask } = await stalled(unread, ['--redis', redis.url, ...shortLeases]);
      const until = performance.now() + 3 * leaseMs;
      while (performance.now() < until) {
        expect(await ask('/readyz')).toBe(200); // the lease is held
        await delay(100);
      }
      // The last line may be on its way.
      const written = () => {
        const all = unread.read();
        return all.slice(0, all.lastIndexOf('\n'));
      };
      const text = await waitFor(() => written().includes('log lines were lost') && written(), {
        what: 'what is missing',
      });
      const lines = text.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>);
      const lost = lines.filter((line) => 'lost' in line).reduce((sum, line) => sum + Number(line['lost']), 0);
      const seen = lines.filter(({ msg }) => msg === 'request').length;
      expect(lost).toBeGreaterThan(0);
      expect(seen + lost).toBeGreaterThanOrEqual(requests);
      expect(lines.filter(({ msg }) => /lease/.test(String(msg)))).toEqual([]);
      child.kill('SIGTERM');
      expect(await once(child, 'exit')).toEqual([0, null]);
      expect(await waitFor(() => unread.read().includes('"msg":"shut down"'), { what: 'the last line' })).toBe(true);
    },
    90_000,
  );

  test('does not hold up the end of the gateway', async () => {
    const { child } = await stalled(createPipe());
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  }, 60_000);
});
