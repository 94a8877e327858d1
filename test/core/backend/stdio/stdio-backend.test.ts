import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Message } from '../../../../src/core/protocol/message/message.ts';
import { asMessage } from '../../../support/as-message.ts';
import { waitFor, withDeadline } from '../../../support/wait-for.ts';
import { endAfterTest, isRunning, openChild, openProgram, stopped } from './harness.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

afterEach(() => vi.restoreAllMocks());

describe('messages to the server', () => {
  it('P1: arrive in order as they were written, small and large, on one line each', async () => {
    const { backend, messages } = openChild('echo');
    const large = `{"large":"${'ü'.repeat(300_000)}"}`;
    const sent = ['{"n":1}', large, '{"n":2,"big":12345678901234567890}', '{\r\n"n": 3\n}', large, '{"n":4}'];
    for (const text of sent) expect(backend.send(asMessage(bytes(text)))).toBe('sent');
    for (const text of sent) expect(await messages.next()).toBe(text.replaceAll(/[\r\n]/g, ' '));
    await backend.close();
  });

  it("P1: the sender's memory is not changed", async () => {
    const { backend, messages } = openChild('echo');
    const message = bytes('{\n}');
    backend.send(asMessage(message));
    await messages.next();
    expect(message).toEqual(bytes('{\n}'));
    await backend.close();
  });

  it('P8: a server that never reads gets at most maxQueuedBytes, and one message however large', async () => {
    const maxQueuedBytes = 1_000_000;
    const { backend, messages } = openChild('never-reads', [], { maxQueuedBytes });
    await messages.next();
    expect(backend.send(asMessage(Buffer.alloc(5_000_000, 'x')))).toBe('sent');
    expect(backend.send(asMessage(bytes('{}')))).toBe('full');
    await backend.close();

    const second = openChild('never-reads', [], { maxQueuedBytes });
    await second.messages.next();
    const message = Buffer.alloc(10_000, 'x');
    let sent = 0;
    while (sent < 1_000 && second.backend.send(asMessage(message)) === 'sent') sent++;
    expect(sent * message.length).toBeGreaterThan(maxQueuedBytes - message.length);
    expect(sent * message.length).toBeLessThan(2 * maxQueuedBytes); // what the pipe takes comes on top
    await second.backend.close();
  });

  it('[F12] no EPIPE crash, and an end, when the server closes its stdin and goes on running', async () => {
    const opened = openChild('closes-stdin');
    await opened.messages.next();
    for (let n = 0; n < 100; n++) opened.backend.send(asMessage(Buffer.alloc(50_000, 'x')));
    expect(await opened.end()).toMatchObject({ reason: 'exited', detail: expect.stringContaining('closed its stdin') });
    expect(opened.backend.send(asMessage(bytes('{}')))).toBe('ended');
  });
});

describe('messages of the server', () => {
  it('[F16] UTF-8 split at every byte, CRLF, a byte order mark and CR inside JSON arrive intact', async () => {
    const opened = openChild('splits-bytes', ['\ufeff{"a":"ü€😀\u2028"}\r\n{\r"b":1}\n']);
    await opened.end();
    expect(opened.messages.items).toEqual(['{"a":"ü€😀\u2028"}', '{ "b":1}']);
  });

  it('hands over all messages of one read in one call', async () => {
    const { backend, messages, bursts } = openChild('floods-stdout');
    await messages.next();
    expect(bursts[0]).toBeGreaterThan(100);
    await backend.close();
  });

  it('[P8] a large one is read in a turn of its own, and the order stays, also where the server ends behind it', async () => {
    const program = `
      const large = JSON.stringify({ large: 'x'.repeat(2 ** 20) });
      process.stdout.write('{"n":1}\\n' + large + '\\n{"n":2}\\n' + large + '\\n{"n":3}\\n');
    `;
    const opened = openProgram({ command: process.execPath, args: ['-e', program] });
    await opened.end();
    expect(opened.messages.items.map(({ length }) => length)).toEqual([7, 2 ** 20 + 12, 7, 2 ** 20 + 12, 7]);
    expect(opened.messages.items.filter((text) => text.includes('n'))).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
  });

  it('the last one needs no line end', async () => {
    const opened = openChild('ends-without-newline');
    await opened.end();
    expect(opened.messages.items).toEqual(['{"a":1}', '{"b":2}']);
  });

  it('[F14] pause stops a flood within the buffers on the way, resume goes on without a gap', async () => {
    const opened = openChild('floods-stdout', [], {}, () => {
      if (opened.bursts.length === 1) opened.backend.pause();
    });
    await opened.messages.next();
    // What was read before the pause is still told.
    for (let length = 0; opened.messages.items.length > length; ) {
      ({ length } = opened.messages.items);
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    }
    expect(opened.messages.items.join('\n').length).toBeLessThanOrEqual(64 * 1024);
    opened.backend.resume();
    await waitFor(() => opened.bursts.length > 20);
    expect(new Set(opened.messages.items)).toEqual(new Set(['{"jsonrpc":"2.0","method":"flood"}']));
    await opened.backend.close();
  });

  it('[F15] a line over the limit ends the backend, after the lines before it', async () => {
    const opened = openChild('giant-line', [], { maxLineBytes: 1_000_000 });
    const detail = expect.stringContaining('1000000 bytes');
    expect(await opened.end()).toMatchObject({ reason: 'line_too_long', detail });
    expect(opened.messages.items).toEqual(['"before"']);
    expect(opened.backend.send(asMessage(bytes('{}')))).toBe('ended');
    await opened.backend.close();
    expect(opened.ends).toHaveLength(1);
    expect(await isRunning(opened.backend.pid ?? 0)).toBe(false);
  });

  it('[F15] the server is read on, so that it can end without a signal, even if it was just paused', async () => {
    const kill = vi.spyOn(process, 'kill');
    const pause = () => opened.backend.pause();
    const opened = openChild('giant-line', [], { maxLineBytes: 10, stdinCloseGraceMs: 5_000 }, pause);
    await opened.end();
    await stopped(opened.backend.pid ?? 0);
    expect(kill.mock.calls.filter(([, signal]) => signal !== 0)).toEqual([]);
  });
});

describe('the end', () => {
  it.each([
    [0, /exited with code 0\./],
    [3, /exited with code 3\./],
    [127, /code 127 \(.*not found\)/],
  ])('[F12] exit code %i is told after the last message and the last words', async (exitCode, detail) => {
    const opened = openChild('exits', [String(exitCode)]);
    const end = await opened.end();
    const lastOutput = ['last words'];
    expect(end).toEqual({
      reason: 'exited',
      detail: expect.stringMatching(detail),
      exitCode,
      signal: null,
      lastOutput,
    });
    expect(opened.messages.items).toEqual(['{"last":"message"}']);
    await opened.backend.close();
    expect(opened.ends).toHaveLength(1);
  });

  it.each(['SIGKILL', 'SIGSEGV'])('[F12] death by %s is told', async (signal) => {
    const opened = openChild('kills-itself', [signal]);
    const detail = expect.stringContaining(`killed by ${signal}`);
    expect(await opened.end()).toEqual({ reason: 'exited', detail, exitCode: null, signal, lastOutput: [] });
  });

  it('[F12] messages to a server that dies do no harm', async () => {
    const opened = openChild('exits', ['1']);
    let answer = 'sent';
    while (answer !== 'ended') {
      answer = opened.backend.send(asMessage(Buffer.alloc(100_000, 'x')));
      await new Promise(setImmediate);
    }
    expect((await opened.end()).reason).toBe('exited');
  });

  it('[F19] exit ends the backend although a grandchild holds stdout open', async () => {
    const opened = openChild('leaves-grandchild', ['hold']);
    const [stubborn, holder] = JSON.parse(await opened.messages.next());
    endAfterTest(stubborn);
    endAfterTest(holder);
    const start = performance.now();
    expect((await opened.end()).reason).toBe('exited');
    expect(performance.now() - start).toBeLessThan(10_000); // the grandchild would hold it for 30 s
    await opened.backend.close();
    expect(await isRunning(stubborn)).toBe(false);
    expect(await isRunning(holder)).toBe(false);
  });

  it('P8: what a grandchild floods after the exit is delivered up to a bound, then only read', async () => {
    let received = 0;
    const count = (found: readonly Message[]) => {
      for (const { text } of found) received += text.length + 1;
    };
    const opened = openChild('leaves-flood', [], { drainAfterExitMs: 1_000 }, count);
    opened.backend.pause();
    endAfterTest(Number(await opened.stderr.next()));
    await opened.end();
    expect(received).toBeGreaterThan(500_000);
    expect(received).toBeLessThan(1_300_000);
  });

  it('[F19] a grandchild that left the group cannot hold the descriptors of the gateway', async () => {
    const opened = openChild('leaves-flood', ['detached']);
    const grandchild = Number(await opened.stderr.next());
    endAfterTest(grandchild);
    await opened.end();
    await opened.backend.close();
    await stopped(grandchild); // by EPIPE: nobody has the other end any more
  });

  it('a paused backend whose server exits still gets all that was in the pipe, and ends', async () => {
    const opened = openChild('exits-with-full-pipe');
    opened.backend.pause();
    const end = await opened.end();
    expect(end).toMatchObject({ reason: 'exited', exitCode: 0 });
    const written = Number(end.lastOutput?.[0]);
    expect(written).toBeGreaterThan(0);
    const whole = opened.messages.items.slice(0, written - 1).map((text) => JSON.parse(text).n);
    expect(whole).toEqual([...Array(written - 1).keys()]);
  });

  it('a stalling event loop at the exit does not cost the last messages', async () => {
    const opened = openChild('exits-with-full-pipe', [], { drainAfterExitMs: 0 });
    opened.backend.pause();
    let isOver = false;
    const stall = () => {
      const until = performance.now() + 5;
      while (performance.now() < until); // now timers are due before anything can be read
      if (!isOver) setImmediate(stall);
    };
    stall();
    const { lastOutput } = await opened.end();
    isOver = true;
    const written = Number(lastOutput?.[0]);
    expect(opened.messages.items.length).toBeGreaterThanOrEqual(written - 1);
  });

  it('[F12] a server that closes its stdout can answer nothing and is ended', async () => {
    const opened = openChild('closes-stdout');
    expect(await opened.end()).toMatchObject({
      reason: 'exited',
      detail: expect.stringContaining('closed its stdout'),
    });
  });

  it('[F12] one that closes its stdout right at its start, before the gateway has it, is ended, too', async () => {
    await openChild('echo').backend.close(); // the starter runs
    const opened = openProgram({ command: 'sh', args: ['-c', 'exec >&-; exec sleep 60'] });
    const until = performance.now() + 500;
    while (performance.now() < until); // its pipes are handed over later
    const detail = expect.stringContaining('closed its stdout');
    expect(await opened.end()).toMatchObject({ reason: 'exited', detail });
  });

  it('close is told as closed, exactly once, never from inside close, and can be repeated', async () => {
    const opened = openChild('echo');
    opened.backend.send(asMessage(bytes('{}')));
    await opened.messages.next();
    const closes = [opened.backend.close(), opened.backend.close()];
    expect(opened.ends).toEqual([]);
    expect(opened.backend.send(asMessage(bytes('{}')))).toBe('ended');
    await withDeadline(Promise.all(closes));
    await opened.backend.close();
    expect(opened.ends).toEqual([expect.objectContaining({ reason: 'closed', exitCode: 0, signal: null })]);
  });

  it('close of a flooding, paused server ends it, and nothing more is delivered', async () => {
    const opened = openChild('floods-stdout');
    await opened.messages.next();
    opened.backend.pause();
    const { length } = opened.messages.items;
    await withDeadline(opened.backend.close());
    expect(opened.messages.items).toHaveLength(length);
    await stopped(opened.backend.pid ?? 0);
  });

  it('close right after the opening leaves nothing', async () => {
    const opened = openChild('stubborn');
    await opened.backend.close();
    expect(opened.ends).toHaveLength(1);
    expect(await isRunning(opened.backend.pid ?? 0)).toBe(false);
  });
});
