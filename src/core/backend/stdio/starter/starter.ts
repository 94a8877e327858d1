// src/core/backend/stdio/starter: the second process of the gateway, which starts the servers' processes.
import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Program } from '../launch/program.ts';
import type { ProcessExit } from '../processes/process-exit.ts';
import { ProcessGroup } from '../processes/process-group.ts';
import { isRunning } from '../processes/process-state.ts';

/** A program that runs, as the leader of its own process group, with three pipes and no other descriptor. */
export interface RunningProgram {
  readonly group: ProcessGroup;
  readonly stdin: Socket;
  readonly stdout: Socket;
  readonly stderr: Socket;
  /** Settles when the process has exited. */
  readonly exited: Promise<ProcessExit>;
}

/** The error that explains why a program does not run. */
export interface FailedStart {
  readonly failure: unknown;
}

/** What the starter reports about the program with the number `id`. */
interface Report {
  readonly id: number;
  /** A pipe comes with the message. */
  readonly part?: Pipe;
  /** The program runs; the pipes came before. */
  readonly pid?: number;
  readonly failure?: { readonly code: string; readonly message: string };
  readonly exit?: ProcessExit;
  /** With `exit`: no process of the group is left. Its number can be another group's by now. */
  readonly isGroupGone?: boolean;
}

type Pipe = 'stdin' | 'stdout' | 'stderr';

/** A program that was asked for. */
interface Start {
  readonly program: Program;
  readonly pipes: Partial<Record<Pipe, Socket>>;
  readonly settle: (started: RunningProgram | FailedStart) => void;
  /** Its starter ended once. */
  isRepeated: boolean;
}

/** A process of which the exit is awaited. */
interface Awaited {
  readonly group: ProcessGroup;
  readonly onExit: (exit: ProcessExit) => void;
}

/** V8's space for new objects has its smallest size, and no threads: a start copies the memory of the process. */
const flags = ['--max-semi-space-size=1', '--v8-pool-size=0'];

/** How often the processes of a starter that has ended are looked for. */
const pollMs = 100;

/** After two starters were lost within this time, the next one waits for it, or for a program to start. */
const lossPauseMs = 1_000;

/**
 * Starts programs in a second process. Node.js copies its page tables at each start, on the event loop: for a gateway of
 * 450 MiB, that would stop all sessions for 30 ms. The starter also outlives a gateway that is killed, and ends the
 * servers' process groups then (P10). If the starter itself ends, running servers go on, and another starter takes care
 * of their groups.
 */
export class Starter {
  /** The variables that Node.js itself needs to start. No server inherits them. */
  environment: Readonly<Record<string, string>> = {};
  /** Called when the starter has ended, though the gateway runs. */
  onLost: (() => void) | undefined;
  #process: ChildProcess | undefined;
  #lostAt = Number.NEGATIVE_INFINITY;
  #lastId = 0;
  readonly #starts = new Map<number, Start>();
  /** By the number of the program. */
  readonly #awaited = new Map<number, Awaited>();
  /** Processes whose starter has ended. Nobody reports their exit. */
  readonly #orphans = new Set<Awaited>();
  #orphanPoll: NodeJS.Timeout | undefined;
  /** The groups that the starter ends if the gateway is gone. */
  readonly #groups = new Map<number, ProcessGroup>();

  /** The process id of the starter; undefined while none runs. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Starts the starter, so that the first program does not wait for it. */
  prepare(): void {
    this.#process ??= this.#open();
  }

  /** Starts a program without a shell. Never rejects. */
  start(program: Program): Promise<RunningProgram | FailedStart> {
    return new Promise((settle) => {
      this.#lastId += 1;
      const start: Start = { program, pipes: {}, settle, isRepeated: false };
      this.#starts.set(this.#lastId, start);
      this.#send(this.#lastId, start);
    });
  }

  #send(id: number, { program: { command, args, cwd, env, uid, gid } }: Start): void {
    this.#tell({ start: { id, command, args, cwd, env, uid, gid } });
    this.#keepAlive();
  }

  #tell(message: object): void {
    this.#process ??= this.#open();
    // A starter that has just ended fails each message. 'disconnect' follows.
    if (this.#process.connected) this.#process.send(message, () => undefined);
  }

  #open(): ChildProcess {
    // The groups are arguments: a message could come too late, if the gateway is killed just then (P10).
    const groups = [...this.#groups.keys()].map(String);
    const opened = fork(fileURLToPath(new URL('./starter-process.cjs', import.meta.url)), groups, {
      execArgv: flags,
      env: { ...this.environment },
      // A process group of its own: signals of the terminal are for the gateway.
      detached: true,
      // No output: who waits for the end of the gateway's output shall not wait for the starter.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    opened.on('message', (report, pipe) => this.#take(report as Report, pipe as Socket | undefined));
    opened.once('disconnect', () => this.#onLost(opened));
    opened.once('error', (failure) => this.#onFailed(opened, failure));
    opened.unref();
    opened.channel?.unref();
    return opened;
  }

  #take({ id, part, pid, failure, exit, isGroupGone }: Report, pipe: Socket | undefined): void {
    const start = this.#starts.get(id);
    if (part !== undefined) this.#takePipe(start, part, pipe);
    else if (exit !== undefined) this.#onExit(id, exit, isGroupGone === true);
    else if (start !== undefined) {
      this.#starts.delete(id);
      if (pid === undefined) start.settle({ failure: Object.assign(new Error(failure?.message), failure) });
      else this.#onStarted(id, start, pid);
    }
    this.#keepAlive();
  }

  #takePipe(start: Start | undefined, part: Pipe, pipe: Socket | undefined): void {
    if (pipe === undefined) return;
    pipe.on('error', () => undefined); // until the backend listens
    // What a server closes is noticed when something is written to it.
    if (part === 'stdin') pipe.allowHalfOpen = true;
    if (start === undefined) pipe.destroy();
    else start.pipes[part] = pipe;
  }

  #onStarted(id: number, { pipes: { stdin, stdout, stderr }, settle }: Start, pid: number): void {
    const group = new ProcessGroup(pid, () => {
      if (this.#groups.delete(pid)) this.#tell({ forget: pid });
    });
    this.#groups.set(pid, group);
    if (stdin === undefined || stdout === undefined || stderr === undefined) {
      // The system drops a descriptor for which the gateway has no room.
      for (const pipe of [stdin, stdout, stderr]) pipe?.destroy();
      group.signal('SIGKILL');
      settle({ failure: Object.assign(new Error('no room for the pipes of the program'), { code: 'EMFILE' }) });
      return;
    }
    const exited = new Promise<ProcessExit>((onExit) => this.#awaited.set(id, { group, onExit }));
    settle({ group, stdin, stdout, stderr, exited });
  }

  #onExit(id: number, exit: ProcessExit, isGroupGone: boolean): void {
    const awaited = this.#awaited.get(id);
    if (awaited === undefined) return;
    this.#awaited.delete(id);
    if (isGroupGone) {
      this.#groups.delete(awaited.group.pid);
      awaited.group.forget();
    }
    awaited.onExit(exit);
  }

  /** The starter itself could not be started: the reasons are those of any program. */
  #onFailed(failed: ChildProcess, failure: Error): void {
    if (this.#process !== failed || failed.pid !== undefined) return;
    this.#process = undefined;
    const starts = [...this.#starts.values()];
    this.#starts.clear();
    for (const { settle } of starts) settle({ failure });
  }

  #onLost(lost: ChildProcess): void {
    if (this.#process !== lost) return;
    this.#process = undefined;
    for (const awaited of this.#awaited.values()) this.#orphans.add(awaited);
    this.#awaited.clear();
    if (this.#orphans.size > 0) this.#orphanPoll ??= setInterval(() => this.#lookForOrphans(), pollMs);
    this.onLost?.();
    for (const [id, start] of [...this.#starts]) this.#repeat(id, start);
    const now = performance.now();
    if (now - this.#lostAt > lossPauseMs) this.#guardGroups();
    else setTimeout(() => this.#guardGroups(), lossPauseMs).unref();
    this.#lostAt = now;
  }

  #guardGroups(): void {
    if (this.#groups.size > 0) this.prepare();
  }

  /** Starts a program again whose starter ended. It may have run: then the end of its input ends it. */
  #repeat(id: number, start: Start): void {
    for (const part of ['stdin', 'stdout', 'stderr'] as const) {
      start.pipes[part]?.destroy();
      delete start.pipes[part];
    }
    if (!start.isRepeated) {
      start.isRepeated = true;
      this.#send(id, start);
      return;
    }
    this.#starts.delete(id);
    start.settle({ failure: Object.assign(new Error('the starter ended twice'), { code: 'ECHILD' }) });
  }

  #lookForOrphans(): void {
    for (const orphan of [...this.#orphans]) {
      if (isRunning(orphan.group.pid)) continue;
      this.#orphans.delete(orphan);
      orphan.onExit({ exitCode: null, signal: null });
    }
    if (this.#orphans.size > 0) return;
    clearInterval(this.#orphanPoll);
    this.#orphanPoll = undefined;
  }

  /** The gateway does not end by itself while a program starts or runs. */
  #keepAlive(): void {
    if (this.#starts.size + this.#awaited.size > 0) this.#process?.channel?.ref();
    else this.#process?.channel?.unref();
  }
}

/** The starter of this process. */
export const starter = new Starter();
