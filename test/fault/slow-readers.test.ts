import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { msHere } from '../support/cpu-time.ts';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { initialize, messagesOf, type Session } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { isFull, measureTwice, report, rssMiB, watch } from './memory.ts';
import { shortGrace } from './moody.ts';

const mebibyte = 1024 * 1024;
const slowReaderMs = 1_500;

const start = (...args: string[]): Promise<Gateway> =>
  startGateway({
    args: [
      ...shortGrace,
      '--timeouts.drain',
      '0',
      '--timeouts.slowReader',
      `${slowReaderMs}ms`,
      '--sse.streamAfter',
      '0',
      ...args,
    ],
    command: [process.execPath, `${root}test/fixtures/children/flooding-server.mjs`],
  });

const call = (id: string, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: id } },
});

/** A stream on a bare socket. It is read up to its first event, and from then on only when `read` says so. */
interface Stream {
  readonly socket: Socket;
  readonly first: Promise<unknown>;
  text(): string;
}

function openStream(gateway: Gateway, session: Session, body: object | undefined, reads: boolean): Stream {
  const socket = connect(gateway.port, '127.0.0.1');
  socket.on('error', () => undefined); // it is cut by the gateway
  onTestFinished(() => void socket.destroy());
  const json = body === undefined ? '' : JSON.stringify(body);
  socket.write(
    `${body === undefined ? 'GET' : 'POST'} /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n` +
      `Content-Type: application/json\r\nMcp-Session-Id: ${session.id}\r\nContent-Length: ${json.length}\r\n\r\n${json}`,
  );
  let text = '';
  const first = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => {
      if (text.length < 4_096) text += chunk.toString('latin1');
      if (!text.includes('\nid: ')) return;
      if (!reads) socket.pause();
      resolve();
    });
    socket.once('close', () => reject(new Error(`closed before its first event: ${text}`)));
  });
  first.catch(() => undefined);
  return { socket, first, text: () => text };
}

/** How many of these streams the gateway still has open, as its end of the connection says: it is 01, ESTABLISHED. */
function openOf(gateway: Gateway, streams: readonly Stream[]): number {
  const ports = new Set(streams.map(({ socket }) => socket.localPort));
  const portOf = (address = ''): number => Number.parseInt(address.split(':')[1] ?? '', 16);
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, remote, state]) => state === '01' && portOf(local) === gateway.port && ports.has(portOf(remote)))
    .length;
}

describe('clients that do not read', () => {
  const streams = isFull ? 5_000 : 500;
  const slow = isFull ? 100 : 20;
  const sessionsCount = 10;
  // Flooders, prober and gateway share CI's two cores; the full size is for a machine that has nothing else to do.
  const healthMs = msHere(isFull ? 100 : 250);

  async function measure() {
    const gateway = await start('--limits.session.requests', '1000');
    const sessions: Session[] = [];
    for (let n = 0; n < sessionsCount; n++) sessions.push(await initialize(gateway.url));
    const slowSessions: Session[] = [];
    for (let n = 0; n < 5; n++) slowSessions.push(await initialize(gateway.url));
    const before = rssMiB(gateway.pid);

    // As many GET streams as there are sessions, since each session has one; the others are answers to POSTs.
    const readers: Stream[] = [];
    for (let n = 0; n < streams - slow; n++) {
      const session = sessions[n % sessionsCount] as Session;
      readers.push(openStream(gateway, session, n < sessionsCount ? undefined : call(`c${n}`, 'hang'), true));
      if (n % 100 === 99) await Promise.all(readers.map(({ first }) => first));
    }
    await Promise.all(readers.map(({ first }) => first));
    const perStreamKiB = Math.round(((rssMiB(gateway.pid) - before) * 1024) / readers.length);

    const deaf = Array.from({ length: slow }, (_, n) =>
      openStream(gateway, slowSessions[n % 5] as Session, call(`s${n}`, 'flood', { bytes: 8 * mebibyte }), false),
    );
    await Promise.all(deaf.map(({ first }) => first));
    const cut = waitFor(() => openOf(gateway, deaf) === 0, {
      what: 'the end of the slow streams',
      deadlineMs: 120_000,
      intervalMs: 100,
    });
    const seen = await watch(gateway, cut);
    expect((await (sessions[0] as Session).request('x')).status).toBe(200);
    for (const session of slowSessions) expect((await session.request('x')).status).toBe(200);
    expect(readers.filter(({ socket }) => socket.destroyed)).toEqual([]);
    for (const { socket } of [...readers, ...deaf]) socket.destroy();
    await gateway.stop();
    return { ...seen, perStreamKiB };
  }

  test('[F20] [P8] are cut; memory stays flat and /healthz fast, whatever the number of streams', async () => {
    const seen = await measureTwice(measure, ({ grownMiB, p99Ms }) => grownMiB < 150 && p99Ms < healthMs);
    report(`F20 ${streams} streams of which ${slow} never read`, seen);
    expect(seen.grownMiB).toBeLessThan(150);
    expect(seen.p99Ms).toBeLessThan(healthMs);
    expect(seen.perStreamKiB).toBeLessThan(100);
  }, 300_000);

  test('[F20] [P4] are cut after --timeouts.slowReader, and get all of it when they come back', async () => {
    const log = ['--replay.maxSize', `${256 * mebibyte}B`];
    const gateway = await start(...log);
    const session = await initialize(gateway.url);
    const openedAt = performance.now();
    const stream = openStream(gateway, session, call('f', 'flood', { bytes: 32 * mebibyte }), false);
    await stream.first;
    await waitFor(() => openOf(gateway, [stream]) === 0, { what: 'the cut', deadlineMs: 30_000 });
    expect(performance.now() - openedAt).toBeGreaterThan(slowReaderMs * 0.9);
    stream.socket.destroy();
    const first = /\nid: (\S+)/.exec(stream.text())?.[1] ?? '';
    const answer = await (await session.getStream(first)).answer();
    const messages = messagesOf(answer.events);
    const { lines } = messages.at(-1).result;
    expect(messages.slice(0, -1).map(({ params }) => params.progress)).toEqual(
      Array.from({ length: lines }, (_, n) => n + 1),
    );
  });

  test('[F20] [P8] hold up no other session: its calls take as long as before', async () => {
    const gateway = await start();
    const [slowSession, session] = [await initialize(gateway.url), await initialize(gateway.url)];
    const timesOf = async (count: number): Promise<number> => {
      const times: number[] = [];
      for (let n = 0; n < count; n++) {
        const sentAt = performance.now();
        await session.request('x');
        times.push(performance.now() - sentAt);
        await delay(2);
      }
      return times.sort((a, b) => a - b)[Math.floor(count * 0.99)] as number;
    };
    const measureOnce = async (): Promise<{ alone: number; beside: number }> => {
      await timesOf(50);
      const alone = await timesOf(200);
      const stream = openStream(gateway, slowSession, call(`f${alone}`, 'flood', { bytes: 16 * mebibyte }), false);
      await stream.first;
      const beside = await timesOf(200);
      stream.socket.destroy();
      return { alone, beside };
    };
    const isFast = ({ alone, beside }: { alone: number; beside: number }): boolean =>
      beside < 100 || beside < 5 * alone;
    const seen = await measureTwice(measureOnce, isFast);
    report('F20 p99 of another session', seen);
    expect(isFast(seen)).toBe(true);
  });
});
