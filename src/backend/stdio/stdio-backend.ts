// src/backend/stdio: runs STDIO servers as local processes.
import { type Message, reportNoise, type ServerMessages } from '../../protocol/message/message.ts';
import { detach } from '../../util/boundary.ts';
import { type Backend, type BackendEnd, type BackendEvents, closedByGateway, longestLineBytes } from '../backend.ts';
import { failedBackend } from '../failed-backend.ts';
import { OrderedDelivery } from '../in-order.ts';
import type { Program } from './launch/program.ts';
import { launchFailure } from './launch/setpriv.ts';
import { explainSpawnFailure } from './launch/spawn-failure.ts';
import { type RunningProgram, spawnProgram } from './launch/spawn-program.ts';
import { drainPipes } from './pipes/drain-pipes.ts';
import { EarlyLines, unfinishedBytes } from './pipes/early-lines.ts';
import { OutputReader } from './pipes/output-reader.ts';
import { ReadBudget } from './pipes/read-budget.ts';
import { StderrReader } from './pipes/stderr.ts';
import { StdioInput } from './pipes/stdin.ts';
import { watchMemory } from './processes/memory-limit.ts';
import { describeProcessExit, type ProcessExit } from './processes/process-exit.ts';
import { type ProcessGroup, trackProcessGroup } from './processes/process-group.ts';
import { type Termination, type TerminationGrace, terminateGroup } from './processes/terminate-group.ts';

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
    : new StdioBackend(spawned, options, events);
}

function failedStdioBackend(failure: Promise<unknown>, program: Program, events: BackendEvents): Backend {
  const why = failure.then((cause) => ({ reason: 'failed', ...explainSpawnFailure(cause, program), cause }) as const);
  return failedBackend(why, events);
}

/** A running server: a class, since every session has one. */
class StdioBackend implements Backend, Termination {
  readonly pid: number;
  readonly group: ProcessGroup;
  readonly stdinCloseGraceMs: number | undefined;
  readonly terminateGraceMs: number | undefined;
  readonly #spawned: RunningProgram;
  readonly #options: StdioOptions;
  readonly #events: BackendEvents;
  readonly #output: OutputReader;
  readonly #stderr: StderrReader;
  readonly #reading: ReadBudget;
  readonly #input: StdioInput;
  /** Stops reading until a large line is delivered. */
  readonly #inOrder: OrderedDelivery;
  readonly #stopMemoryWatch: (() => void) | undefined;
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

  constructor(spawned: RunningProgram, options: StdioOptions, events: BackendEvents) {
    const { pid, child } = spawned;
    const { maxLineBytes = longestLineBytes, maxQueuedBytes = defaultMaxQueuedBytes } = options;
    const { maxMemoryBytes, onStarted, onStderr } = options;
    const { stdin, stdout, stderr } = child;
    this.pid = pid;
    this.group = trackProcessGroup(pid);
    this.stdinCloseGraceMs = options.stdinCloseGraceMs;
    this.terminateGraceMs = options.terminateGraceMs;
    this.#spawned = spawned;
    this.#options = options;
    this.#events = events;
    this.#output = new OutputReader(maxLineBytes);
    this.#stderr = new StderrReader(stderr, onStderr && ((line) => onStderr(line, pid)));
    this.#reading = new ReadBudget(stdout, maxBytesPerTurn);
    this.#input = new StdioInput(stdin, maxQueuedBytes);
    this.#inOrder = new OrderedDelivery('backend', this.#reading);
    this.#stopMemoryWatch =
      maxMemoryBytes === undefined ? undefined : watchMemory(pid, maxMemoryBytes, (bytes) => this.#endForMemory(bytes));
    child.on('exit', (exitCode, signal) => this.#onExit({ exitCode, signal }));
    if (onStarted) child.once('spawn', () => onStarted(pid));
    stdin.on('error', () => this.#endForPipe('stdin'));
    stdout.on('data', (chunk: Buffer) => this.#take(chunk));
    const onStdoutClosed = (): void => this.#endForPipe('stdout');
    stdout.on('end', onStdoutClosed);
    stdout.on('error', onStdoutClosed);
  }

  send(message: Message): 'sent' | 'full' | 'ended' {
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
    await this.#end();
    await this.#settled;
  }

  closeStdin(): void {
    this.#input.end();
  }

  get exited(): Promise<unknown> {
    return this.#hasExited ? Promise.resolve() : new Promise((resolve) => this.#spawned.child.once('exit', resolve));
  }

  /** Ends the process group, once. */
  #end(): Promise<void> {
    this.#ended ??= terminateGroup(this).then(() => {
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
    this.#events.onEnd({ ...end, lastOutput: [...early, ...this.#stderr.recentLines()] });
  }

  #endForPipe(pipe: 'stdin' | 'stdout'): void {
    if (this.#hasExited || this.#isClosing) return;
    this.#closedPipe ??= pipe;
    detach('backend', this.#end());
  }

  #endForMemory(bytes: number): void {
    if (this.#hasExited || this.#isClosing) return;
    const { maxMemoryBytes } = this.#options;
    const detail = `The server was killed because it used ${bytes} bytes of memory. The limit is ${maxMemoryBytes} (--defaults.process.memory).`;
    this.#reportEnd({ reason: 'memory_limit', detail });
    this.group.signal('SIGKILL'); // a server that allocates without end gets no chance to end in order
    detach('backend', this.#end());
  }

  #take(chunk: Buffer): void {
    this.#reading.consumed(chunk.length);
    if (this.#hasExited) this.#bytesAfterExit += chunk.length;
    if (this.#bytesAfterExit > maxBytesAfterExit) this.#isDiscarding = true;
    if (this.#isDiscarding) return;
    for (const portion of this.#output.read(chunk)) this.#inOrder.takeLater(portion, (read) => this.#deliver(read));
    if (this.#output.overflowed) this.#inOrder.after(() => this.#endForLongLine());
  }

  #deliver(read: ServerMessages): void {
    if (this.#isDiscarding) return;
    const { messages } = read;
    if (!this.#hasSpoken) this.#noteEarly(read);
    reportNoise(this.#events, [read]);
    if (messages.length > 0) this.#events.onMessages(messages);
  }

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
    detach('backend', this.#end());
  }

  #onExit(exit: ProcessExit): void {
    this.#hasExited = true;
    // check at once: if no member is left, the number can be given to others and must not be used again
    this.group.exists();
    this.#settled = this.#settle(exit);
  }

  async #settle(exit: ProcessExit): Promise<void> {
    const { child, isLaunched } = this.#spawned;
    const { stdin, stdout, stderr } = child;
    const { drainAfterExitMs = defaultDrainAfterExitMs } = this.#options;
    const detail =
      this.#closedPipe && this.group.lastSignal
        ? `The server was stopped because it closed its ${this.#closedPipe} and kept running.`
        : describeProcessExit(exit);
    this.#reading.resume();
    await this.#inOrder.idle;
    await drainPipes([stdout, stderr], drainAfterExitMs);
    await this.#inOrder.idle;
    const lastLine = this.#isDiscarding ? undefined : this.#output.flush();
    if (lastLine !== undefined) this.#deliver(await lastLine);
    const cause = isLaunched ? launchFailure(exit.exitCode, this.#stderr.recentLines()) : undefined;
    if (this.#isClosing) this.#reportEnd({ ...closedByGateway, ...exit });
    else if (cause) this.#reportEnd({ reason: 'failed', ...explainSpawnFailure(cause, this.#options), cause });
    else this.#reportEnd({ reason: 'exited', detail, ...exit });
    this.#stopMemoryWatch?.();
    await this.#end();
    for (const stream of [stdin, stdout, stderr]) stream.destroy(); // a process that left the group can hold them open
  }
}
