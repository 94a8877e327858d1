import { isSame, type Principal } from '../../core/protocol/principal.ts';
import { detach } from '../../core/util/boundary.ts';
import type { InitializedProcess } from './initialized-process.ts';

/** Options of `RunningProcesses`. */
export interface RunningProcessesOptions {
  /** True if the operator has said which sessions belong together. Sessions then never look for another process. */
  readonly hasAffinity: boolean;
  /** The owner of a process that is started for this user now. */
  ownerOf(principal: Principal | undefined): Principal | undefined;
  /** How long a server may take to answer `initialize`, in milliseconds. */
  readonly startTimeoutMs?: number | undefined;
  /** Only one process of the server can run, as its second one has shown. Called once. */
  onOnlyProcess?(): void;
}

/**
 * A process that ends by itself while another one starts, or so soon after that, was perhaps ended by it. Some servers
 * end the process that holds their port or lock.
 */
const momentMs = 2_000;

/** So often it must be seen that only one process of a server can run, until this is remembered without one. */
const enoughEvidence = 2;

/** A process that is silent for so long, or for so many times the slowest start, while another one works, waits for it. */
const minSilenceMs = 5_000;
const slowStart = 4;

/**
 * All processes of one server that were started for sessions and have not ended. From how they start and end it learns
 * whether only one process of the server can run (docs/decisions/0164).
 */
export class RunningProcesses {
  readonly #options: RunningProcessesOptions;
  readonly #running = new Set<InitializedProcess>();
  #isOnlyOne = false;
  /** How often this was seen since two processes have run at the same time. */
  #evidence = 0;
  /** True if a second process was seen to end the first one. */
  #endsOthers = false;
  #slowestStartMs = 0;
  /** When a process last answered `initialize`, by `performance.now()`. */
  #openedAt = 0;
  #hasReported = false;

  constructor(options: RunningProcessesOptions) {
    this.#options = options;
  }

  /** True while it is known that only one process of the server can run. */
  get isOnlyOne(): boolean {
    return this.#isOnlyOne;
  }

  /** True while a process serves sessions. */
  get isServing(): boolean {
    return this.#serving.length > 0;
  }

  /** After so long without an answer to `initialize`, `isOutlived` should be asked, in milliseconds. */
  get silenceMs(): number {
    const { startTimeoutMs = Number.POSITIVE_INFINITY } = this.#options;
    return Math.min(Math.max(minSilenceMs, slowStart * this.#slowestStartMs), startTimeoutMs / 2);
  }

  /** Adds a process that starts now. It must be told `onOpened` and `onEnded`. */
  start(create: (listeners: { onOpened(): void; onEnded(): void }) => InitializedProcess): InitializedProcess {
    // The process keeps these listeners. If they kept the others, no process would ever be freed while sessions overlap.
    let others: readonly InitializedProcess[] = this.#serving;
    const onOpened = (): void => {
      this.#noteOpened(process, others);
      others = [];
    };
    const onEnded = (): void => {
      others = [];
      detach('backend', this.#noteEnded(process));
    };
    const process = create({ onOpened, onEnded });
    this.#running.add(process);
    return process;
  }

  /** A session has a process now, because its own did not start and it shares another one. */
  noteOnlyProcess(): void {
    if (!this.#isOnlyOne) this.#evidence += 1;
    this.#knowOnlyOne();
  }

  /**
   * A process that keeps another one of the server from running: one of the same user, which can be shared once it has
   * started, or one of anybody that is ending (P11).
   * @param failed the process that was started for the session, if it has failed
   */
  findOther(principal: Principal | undefined, failed?: InitializedProcess): InitializedProcess | undefined {
    if (this.#options.hasAffinity) return undefined;
    const owner = this.#options.ownerOf(principal);
    const others = [...this.#running].filter((process) => process !== failed && process.closed === undefined);
    const own = others.filter(({ options }) => isSameOwner(options.owner, owner));
    const found = own.find(({ isOnlyChoice }) => isOnlyChoice) ?? own.find(({ isStarting }) => isStarting);
    return found ?? [...this.#running].find((process) => process !== failed && process.closed !== undefined);
  }

  /**
   * True if the process is silent since it was started for the user, while another one of the user works. While other
   * processes answer one after the other, the machine is only slow.
   */
  async isOutlived(principal: Principal | undefined, silent: InitializedProcess): Promise<boolean> {
    const other = this.findOther(principal, silent);
    const quietMs = performance.now() - Math.max(silent.startedAt, this.#openedAt);
    if (other?.isOnlyChoice !== true || quietMs < this.silenceMs) return false;
    return other.isReady();
  }

  /** True if the start of a process for the user would end the one of another user. */
  isTaken(principal: Principal | undefined): boolean {
    if (!this.#isOnlyOne || !this.#endsOthers || this.#options.hasAffinity) return false;
    const owner = this.#options.ownerOf(principal);
    const living = [...this.#running].filter(({ isOnlyChoice, isStarting }) => isOnlyChoice || isStarting);
    return living.length > 0 && living.every(({ options }) => !isSameOwner(options.owner, owner));
  }

  get #serving(): InitializedProcess[] {
    return [...this.#running].filter(({ isOnlyChoice }) => isOnlyChoice);
  }

  /** If others still run a moment later, more than one process of the server can run. */
  #noteOpened(process: InitializedProcess, others: readonly InitializedProcess[]): void {
    this.#openedAt = performance.now();
    this.#slowestStartMs = Math.max(this.#slowestStartMs, this.#openedAt - process.startedAt);
    if (others.length === 0) return;
    const check = (): void => {
      const haveStayed = [process, ...others].every(({ hasEnded, closed }) => !hasEnded || closed !== undefined);
      if (!haveStayed || process.hasEnded || others.every(({ hasEnded }) => hasEnded)) return;
      this.#evidence = 0;
      this.#isOnlyOne = false;
      this.#endsOthers = false;
    };
    setTimeout(check, momentMs).unref();
  }

  async #noteEnded(process: InitializedProcess): Promise<void> {
    const { answer, closed, startedAt } = process;
    const mayBeReason = (other: InitializedProcess): boolean => other.startedAt > startedAt && other.isNew(momentMs);
    if (answer !== undefined && closed === undefined && [...this.#running].some(mayBeReason)) {
      this.#evidence += 1;
      // Once, it may have been a crash.
      if (this.#evidence >= enoughEvidence) {
        this.#endsOthers = true;
        this.#knowOnlyOne();
      }
    }
    await closed;
    this.#running.delete(process);
    if (this.#running.size === 0) this.#isOnlyOne = this.#evidence >= enoughEvidence;
  }

  #knowOnlyOne(): void {
    this.#isOnlyOne = true;
    if (this.#hasReported) return;
    this.#hasReported = true;
    this.#options.onOnlyProcess?.();
  }
}

/** True if both processes belong to the same user, or both to all users. */
export const isSameOwner = (a: Principal | undefined, b: Principal | undefined): boolean =>
  a === undefined ? b === undefined : b !== undefined && isSame(a, b);
