// src/core/backend/stdio: runs STDIO servers as local processes.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { setImmediate as pollTurn } from 'node:timers/promises';
import type { Message } from '../../protocol/message/message.ts';
import { reportNoise, type ServerMessages } from '../../protocol/message/server-texts.ts';
import { detach } from '../../util/boundary.ts';
import { settlesWithin } from '../../util/timing/within.ts';
import {
  type Backend,
  type BackendEnd,
  type BackendEvents,
  closedByGateway,
  longestLineBytes,
  type Sent,
} from '../backend.ts';
import { OrderedDelivery } from '../in-order.ts';
import type { Program } from './launch/program.ts';
import { explainSpawnFailure } from './launch/spawn-failure.ts';
import { EarlyLines, unfinishedBytes } from './pipes/early-lines.ts';
import { OutputReader } from './pipes/output-reader.ts';
import { ReadBudget } from './pipes/read-budget.ts';
import { StderrReader } from './pipes/stderr.ts';
import { StdioInput } from './pipes/stdin.ts';
import { watchMemory } from './processes/memory-limit.ts';
import { describeProcessExit, type ProcessExit } from './processes/process-exit.ts';
import { type TerminationGrace, terminateGroup } from './processes/terminate-group.ts';
import { type RunningProgram, starter } from './starter/starter.ts';

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
  onStderr?(line: string, pid: number): void;
}

const defaultMaxQueuedBytes = 16 * 1024 * 1024;
const defaultDrainAfterExitMs = 100;

/**
 * More than an operating system keeps in a pipe: bytes beyond it after the exit come from another process that floods.
 */
const maxBytesAfterExit = 1024 * 1024;

/** A program that does not start sooner is ended when it does. Nobody who closes its backend waits longer for it. */
const startLimitMs = 2_000;

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
export const openStdio = (options: StdioOptions, events: BackendEvents): Backend => new StdioBackend(options, events);

/** A server's process: a class, since every session has one. */
class StdioBackend implements Backend {
  readonly #options: StdioOptions;
  readonly #events: BackendEvents;
  readonly #output: OutputReader;
  readonly #reading: ReadBudget;
  readonly #input: StdioInput;
  /** Stops reading until a large line is delivered. */
  readonly #inOrder: OrderedDelivery;
  /** Settles when the program runs, or has failed to start. */
  readonly #opened: Promise<void>;
  /** Undefined until the program runs. */
  #program: RunningProgram | undefined;
  #stderr: StderrReader | undefined;
  #stopMemoryWatch: (() => void) | undefined;
  /** Output is no longer delivered, only read. */
  #isDiscarding = false;
  #isClosing = false;
  #hasExited = false;
  #isEndReported = false;
  #bytesAfterExit = 0;
  /** True once the server has sent a message. */
  #hasSpoken = false;
  /** What the server has written to stdout before; undefined if that is nothing. */
  #earlyLines: EarlyLines | undefined;
  /** The pipe that the server closed itself while running; it was ended for that. */
  #closedPipe: 'stdin' | 'stdout' | undefined;
  /** The end of the process group, once it has begun. */
  #ended: Promise<void> | undefined;
  /** Settles when everything after the exit is done; undefined before the exit. */
  #settled: Promise<void> | undefined;

  constructor(options: StdioOptions, events: BackendEvents) {
    const { maxLineBytes = longestLineBytes, maxQueuedBytes = defaultMaxQueuedBytes } = options;
    this.#options = options;
    this.#events = events;
    this.#output = new OutputReader(maxLineBytes);
    this.#reading = new ReadBudget(maxBytesPerTurn);
    this.#input = new StdioInput(maxQueuedBytes);
    this.#inOrder = new OrderedDelivery('backend', this.#reading);
    this.#opened = starter.start(options).then((started) => {
      if ('failure' in started) this.#onFailed(started.failure);
      else this.#onStarted(started);
    });
    detach('backend', this.#opened);
  }

  get pid(): number | undefined {
    return this.#program?.group.pid;
  }

  #onFailed(cause: unknown): void {
    this.#reportEnd({ reason: 'failed', ...explainSpawnFailure(cause, this.#options), cause });
  }

  #onStarted(program: RunningProgram): void {
    const { group, stdin, stdout, stderr, exited } = program;
    const { pid } = group;
    const { maxMemoryBytes, onStarted, onStderr } = this.#options;
    this.#program = program;
    this.#stderr = new StderrReader(stderr, onStderr && ((line) => onStderr(line, pid)));
    this.#stopMemoryWatch =
      maxMemoryBytes === undefined ? undefined : watchMemory(pid, maxMemoryBytes, (bytes) => this.#endForMemory(bytes));
    detach(
      'backend',
      exited.then((exit) => this.#onExit(program, exit)),
    );
    stdin.on('error', () => this.#endForPipe('stdin'));
    stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    const onStdoutClosed = (): void => this.#endForPipe('stdout');
    stdout.on('end', onStdoutClosed);
    stdout.on('error', onStdoutClosed);
    this.#reading.open(stdout);
    this.#input.open(stdin);
    onStarted?.(pid);
    // A server may have closed its stdout before the gateway had it.
    if (stdout.readableEnded || stdout.destroyed) onStdoutClosed();
    if (this.#isClosing) detach('backend', this.#end(program));
  }

  send(message: Message): Sent {
    return this.#isDiscarding || this.#ended || this.#hasExited ? 'ended' : this.#input.send(message);
  }

  pause(): void {
    if (!this.#isDiscarding && !this.#hasExited) this.#reading.pause();
  }

  resume(): void {
    this.#reading.resume();
  }

  async close(): Promise<void> {
    if (!this.#hasSpoken && !this.#isDiscarding) this.#noteUnfinished();
    this.#isClosing ||= !this.#hasExited;
    this.#isDiscarding = true;
    this.#reading.resume();
    await settlesWithin(this.#opened, startLimitMs);
    if (this.#program !== undefined) await this.#end(this.#program);
    await this.#settled;
  }

  /** Ends the process group, once. */
  #end({ group, exited }: RunningProgram): Promise<void> {
    const { stdinCloseGraceMs, terminateGraceMs } = this.#options;
    const closeStdin = (): void => this.#input.end();
    this.#ended ??= terminateGroup({ group, exited, stdinCloseGraceMs, terminateGraceMs, closeStdin }).then(() => {
      const reason = this.#isClosing ? 'closed' : 'exited';
      if (!this.#hasExited) this.#reportEnd({ reason, detail: 'The server survived SIGKILL.' });
    });
    return this.#ended;
  }

  #reportEnd(end: BackendEnd): void {
    if (this.#isEndReported) return;
    this.#isEndReported = true;
    this.#isDiscarding = true;
    this.#reading.resume(); // a paused backend would not be resumed any more
    const early = this.#earlyLines?.lines ?? [];
    this.#events.onEnd({ ...end, lastOutput: [...early, ...(this.#stderr?.recentLines() ?? [])] });
  }

  #endForPipe(pipe: 'stdin' | 'stdout'): void {
    if (this.#hasExited || this.#isClosing) return;
    this.#closedPipe ??= pipe;
    this.#endSoon();
  }

  #endForMemory(bytes: number): void {
    if (this.#hasExited || this.#isClosing) return;
    const { maxMemoryBytes } = this.#options;
    const detail = `The server was killed because it used ${bytes} bytes of memory. The limit is ${maxMemoryBytes} (--defaults.process.memory).`;
    this.#reportEnd({ reason: 'memory_limit', detail });
    this.#program?.group.signal('SIGKILL'); // a server that allocates without end gets no chance to end in order
    this.#endSoon();
  }

  #endSoon(): void {
    if (this.#program !== undefined) detach('backend', this.#end(this.#program));
  }

  #take(chunk: Buffer): void {
    this.#reading.consumed(chunk.length);
    if (this.#hasExited) this.#bytesAfterExit += chunk.length;
    if (this.#bytesAfterExit > maxBytesAfterExit) this.#isDiscarding = true;
    if (this.#isDiscarding) return;
    this.#inOrder.takeTexts(this.#output.linesOf(chunk), this.#deliver);
    if (this.#output.overflowed) this.#inOrder.after(() => this.#endForLongLine());
  }

  readonly #deliver = (read: ServerMessages): void => {
    if (this.#isDiscarding) return;
    const { messages, noise } = read;
    if (!this.#hasSpoken) this.#noteEarly(read);
    if (noise.length > 0) reportNoise(this.#events, [read]);
    if (messages.length > 0) this.#events.onMessages(messages);
  };

  #noteEarly({ messages, noise }: ServerMessages): void {
    for (const line of noise) {
      this.#earlyLines ??= new EarlyLines();
      this.#earlyLines.note(line);
    }
    if (messages.length === 0) return;
    this.#hasSpoken = true;
    this.#earlyLines = undefined;
  }

  #noteUnfinished(): void {
    const text = this.#output.unfinished(unfinishedBytes);
    if (text.length === 0) return;
    this.#earlyLines ??= new EarlyLines();
    this.#earlyLines.noteUnfinished(text);
  }

  #endForLongLine(): void {
    if (this.#isDiscarding) return;
    const { maxLineBytes = longestLineBytes } = this.#options;
    const detail = `The server wrote a line of more than ${maxLineBytes} bytes.`;
    this.#reportEnd({ reason: 'line_too_long', detail });
    this.#endSoon();
  }

  #onExit(program: RunningProgram, exit: ProcessExit): void {
    this.#hasExited = true;
    // check at once: if no member is left, the number can be given to others and must not be used again
    program.group.exists();
    this.#settled = this.#settle(program, exit);
  }

  async #settle(program: RunningProgram, exit: ProcessExit): Promise<void> {
    const { group, stdin, stdout, stderr } = program;
    const { drainAfterExitMs = defaultDrainAfterExitMs } = this.#options;
    const detail =
      this.#closedPipe && group.lastSignal
        ? `The server was stopped because it closed its ${this.#closedPipe} and kept running.`
        : describeProcessExit(exit);
    this.#reading.resume();
    do {
      // Nothing is read while output waits for a turn of its own.
      await this.#inOrder.idle;
      await drainPipes([stdout, stderr], drainAfterExitMs);
    } while (this.#inOrder.isBusy);
    const lastLine = this.#isDiscarding ? undefined : this.#output.flush();
    if (lastLine !== undefined) this.#deliver(await lastLine);
    if (this.#isClosing) this.#reportEnd({ ...closedByGateway, ...exit });
    else this.#reportEnd({ reason: 'exited', detail, ...exit });
    this.#stopMemoryWatch?.();
    await this.#end(program);
    for (const stream of [stdin, stdout, stderr]) stream.destroy(); // a process that left the group can hold them open
  }
}

/**
 * Resolves when the 'data' listeners of the pipes have read all output that a process had written before it exited.
 * @param ms how long the pipes may stay open: a process left behind can hold them. After that one more poll of the
 *   event loop counts, since after a stall timers come before waiting input
 */
async function drainPipes(streams: readonly Readable[], ms: number): Promise<void> {
  const ends = streams.filter((stream) => !stream.closed).map((stream) => once(stream, 'close'));
  if (!(await settlesWithin(Promise.allSettled(ends), ms))) await pollTurn();
}
