// src/backend/stdio: runs STDIO servers as local processes.
import { readServerTexts, type ServerMessages } from '../../protocol/message/message.ts';
import { flattenLineBreaks, LineSplitter } from '../../protocol/wire/lines.ts';
import { detach } from '../../util/boundary.ts';
import { type Backend, type BackendEnd, type BackendEvents, closedByGateway } from '../backend.ts';
import { failedBackend } from '../failed-backend.ts';
import { OrderedDelivery } from '../in-order.ts';
import type { Program } from './launch/program.ts';
import { launchFailure } from './launch/setpriv.ts';
import { explainSpawnFailure } from './launch/spawn-failure.ts';
import { type Spawned, spawnProgram } from './launch/spawn-program.ts';
import { drainPipes } from './pipes/drain-pipes.ts';
import { createReadBudget } from './pipes/read-budget.ts';
import { drainStderr } from './pipes/stderr.ts';
import { createStdin } from './pipes/stdin.ts';
import { watchMemory } from './processes/memory-limit.ts';
import { describeProcessExit, type ProcessExit } from './processes/process-exit.ts';
import { trackProcessGroup } from './processes/process-group.ts';
import { type TerminationGrace, terminateGroup } from './processes/terminate-group.ts';

/** Options of a STDIO server and the limits of its backend. */
export interface StdioOptions extends Program, TerminationGrace {
  /** Longest line accepted from the server; stops a server that writes without a line end. */
  readonly maxLineBytes?: number;
  /** Most bytes that wait for a server that does not read. */
  readonly maxQueuedBytes?: number;
  /** How long after the server's exit its output may stay open, held by a process that it left behind. */
  readonly drainAfterExitMs?: number;
  /** Most memory that the server's processes may use together; see `watchMemory`. */
  readonly maxMemoryBytes?: number | undefined;
  /** The program runs; this says nothing about whether it speaks MCP. */
  onStarted?(pid: number): void;
  /** One line of the server's stderr, rate-limited, truncated and escaped. */
  onStderr?(line: string): void;
}

const carriageReturn = 0x0d;

/**
 * More than an operating system keeps in a pipe: bytes beyond it after the exit come from another process that floods.
 */
const maxBytesAfterExit = 1024 * 1024;

/** About as much as an operating system keeps in a pipe: only a server that floods has more. */
const maxBytesPerTurn = 256 * 1024;

/**
 * Starts a STDIO server and connects to it (2025-11-25, basic/transports, "stdio").
 *
 * Beyond `Backend`:
 * - A large message given to `send` is not copied, so its memory must not change afterwards.
 * - After `close` the server's output is read, so that it can end, and discarded.
 * - When the server exits, its output is delivered even if the backend is paused, since nothing could be read later.
 * - A server that closes its stdin or stdout but keeps running is of no use and is ended (`exited`).
 */
export function openStdio(options: StdioOptions, events: BackendEvents): Backend {
  const spawned = spawnProgram(options);
  return 'failure' in spawned
    ? failedStdioBackend(spawned.failure, options, events)
    : liveBackend(spawned, options, events);
}

function failedStdioBackend(failure: Promise<unknown>, program: Program, events: BackendEvents): Backend {
  const why = failure.then((cause) => ({ reason: 'failed', ...explainSpawnFailure(cause, program), cause }) as const);
  return failedBackend(why, events);
}

function liveBackend(
  { pid, child, isLaunched }: Extract<Spawned, { pid: number }>,
  options: StdioOptions,
  events: BackendEvents,
): Backend {
  const {
    maxLineBytes = 64 * 1024 * 1024,
    maxQueuedBytes = 16 * 1024 * 1024,
    drainAfterExitMs = 100,
    maxMemoryBytes,
    onStarted,
    onStderr,
    ...grace
  } = options;
  const { stdin, stdout, stderr } = child;
  const group = trackProcessGroup(pid);
  const splitter = new LineSplitter({ maxLineBytes });
  const { recentLines } = drainStderr(stderr, { onLine: onStderr });
  /** Output is no longer delivered, only read. */
  let isDiscarding = false;
  let isClosing = false;
  let hasExited = false;
  let isEndReported = false;
  let bytesAfterExit = 0;
  /** Lines hold no LF. Until the server writes a CR, no line needs to be searched for line breaks. */
  let hasWrittenCr = false;
  /** The pipe that the server closed itself while running; it was ended for that. */
  let closedPipe: 'stdin' | 'stdout' | undefined;

  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (exitCode, signal) => {
      hasExited = true;
      // check at once: if no member is left, the number can be given to others and must not be used again
      group.exists();
      resolve({ exitCode, signal });
    });
  });

  const reportEnd = (end: BackendEnd) => {
    if (isEndReported) return;
    isEndReported = true;
    isDiscarding = true;
    reading.resume(); // a paused backend would not be resumed any more
    events.onEnd({ ...end, lastOutput: recentLines() });
  };

  let ended: Promise<void> | undefined;
  /** Ends the process group, once. */
  const end = (): Promise<void> => {
    ended ??= terminateGroup({ ...grace, group, exited, closeStdin: input.end }).then(() => {
      if (!hasExited) reportEnd({ reason: isClosing ? 'closed' : 'exited', detail: 'The server survived SIGKILL.' });
    });
    return ended;
  };
  const endIfPipeClosed = (by: 'stdin' | 'stdout') => {
    if (hasExited || isClosing) return;
    closedPipe ??= by;
    detach('backend', end());
  };

  const onMemoryExceeded = (bytes: number) => {
    if (hasExited || isClosing) return;
    const detail = `The server was killed because it used ${bytes} bytes of memory. The limit is ${maxMemoryBytes} (--max-memory-bytes).`;
    reportEnd({ reason: 'memory_limit', detail });
    group.signal('SIGKILL'); // a server that allocates without end gets no chance to end in order
    detach('backend', end());
  };
  const stopMemoryWatch = maxMemoryBytes === undefined ? undefined : watchMemory(pid, maxMemoryBytes, onMemoryExceeded);

  const reading = createReadBudget(stdout, maxBytesPerTurn);
  const input = createStdin(stdin, { maxQueuedBytes, onBroken: () => endIfPipeClosed('stdin') });

  const deliver = ({ messages, noise }: ServerMessages): void => {
    if (isDiscarding) return;
    for (const line of noise) events.onNoise(line);
    if (messages.length > 0) events.onMessages(messages);
    if (!splitter.overflowed) return;
    reportEnd({
      reason: 'line_too_long',
      detail: `The server wrote a line of more than ${maxLineBytes} bytes (--max-line-bytes).`,
    });
    detach('backend', end());
  };
  /** Stops reading until a large line is delivered. */
  const inOrder = new OrderedDelivery('backend', reading);
  const flattenLines = (lines: Buffer[]): Buffer[] =>
    hasWrittenCr ? lines.map((line) => flattenLineBreaks(line)) : lines;
  stdout.on('data', (chunk: Buffer) => {
    reading.consumed(chunk.length);
    if (hasExited) bytesAfterExit += chunk.length;
    if (bytesAfterExit > maxBytesAfterExit) isDiscarding = true;
    if (isDiscarding) return;
    hasWrittenCr ||= chunk.includes(carriageReturn);
    inOrder.take(readServerTexts(flattenLines(splitter.push(chunk))), deliver);
  });
  stdout.once('end', () => endIfPipeClosed('stdout'));
  stdout.on('error', () => endIfPipeClosed('stdout'));
  if (onStarted) child.once('spawn', () => onStarted(pid));

  const settled = exited.then(async (exit) => {
    const detail =
      closedPipe && group.lastSignal
        ? `The server was stopped because it closed its ${closedPipe} and kept running.`
        : describeProcessExit(exit);
    reading.resume();
    await inOrder.idle;
    await drainPipes([stdout, stderr], drainAfterExitMs);
    await inOrder.idle;
    const lastLine = isDiscarding ? undefined : splitter.flush();
    if (lastLine) deliver(await readServerTexts(flattenLines([lastLine])));
    const cause = isLaunched ? launchFailure(exit.exitCode, recentLines()) : undefined;
    if (isClosing) reportEnd({ ...closedByGateway, ...exit });
    else if (cause) reportEnd({ reason: 'failed', ...explainSpawnFailure(cause, options), cause });
    else reportEnd({ reason: 'exited', detail, ...exit });
    stopMemoryWatch?.();
    await end();
    for (const stream of [stdin, stdout, stderr]) stream.destroy(); // a process that left the group can hold them open
  });

  return {
    pid,
    send: (message) => (isDiscarding || ended || hasExited ? 'ended' : input.send(message)),
    pause() {
      if (!isDiscarding && !hasExited) reading.pause();
    },
    resume() {
      reading.resume();
    },
    async close() {
      isClosing ||= !hasExited;
      isDiscarding = true;
      reading.resume();
      await end();
      if (hasExited) await settled;
    },
  };
}
