import { Cluster } from 'ioredis';
import type { StoreTelemetry } from '../../../core/store/store-events.ts';
import { failUnreachable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { detach } from '../../../core/util/boundary.ts';
import { backoff } from '../../../core/util/timing/backoff.ts';
import { within } from '../../../core/util/timing/within.ts';
import type { RedisClient } from './connect.ts';
import { asStoreUnavailable, replyErrorCode, withoutArguments } from './reply-error.ts';

/** The client and time-out of the connection, and who is told of its commands. */
export interface CommandsOptions {
  readonly client: RedisClient;
  /** How long a command may take. What has arrived in time counts, however busy the gateway was. */
  readonly commandTimeoutMs: number;
  /** A command that a server refuses if it takes no writes. */
  readonly probe: (client: RedisClient) => Promise<unknown>;
  /** Receives each fault of the connection, for logs. */
  readonly onError: (cause: unknown) => void;
  readonly telemetry: StoreTelemetry;
}

/** A failover of one master can make slots of a cluster fail now and then, and a probe does not reach every slot. */
const clusterQuietMs = 1_000;

/** The pauses between probes while the store does not answer. */
const pauseAfter = backoff({ firstMs: 25, maxMs: 500 });

/**
 * The connection for commands that do not block. It knows since when the store answers. A failed command ends that, and
 * only a probe shows that the store serves again: a server that refuses writes goes on to answer reads.
 */
export class Commands {
  readonly #options: CommandsOptions;
  readonly #recoveryListeners: (() => void)[] = [];
  /** The reason why there is no connection. */
  #connectionError: Error | undefined;
  #healthySinceMs: number | undefined;
  /** True once the store has failed after it had answered. */
  #hasFailed = false;
  #failures = 0;
  #failedAtMs = Number.NEGATIVE_INFINITY;
  #probes = 0;
  #probeTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: CommandsOptions) {
    this.#options = options;
    const { client, onError } = options;
    client.on('error', (cause: Error) => {
      this.#connectionError = withoutArguments(cause);
      onError(this.#connectionError);
    });
    client.on('node error', (cause: Error) => onError(withoutArguments(cause))); // only a cluster emits this
    client.on('ready', () => {
      this.#connectionError = undefined;
      // At once, without the pause after a failure.
      if (this.#healthySinceMs === undefined && !this.#isClosed) detach('store', this.#probe());
    });
    client.on('close', () => this.#noteFailure());
    this.#probeSoon();
  }

  /** Runs a command. Settles within the command time-out; every failure is a `StoreUnavailable`. */
  readonly run = async <T>(command: (client: RedisClient) => Promise<T>): Promise<T> => {
    const { client, commandTimeoutMs, telemetry } = this.#options;
    const sentAt = performance.now();
    try {
      // Without a node, the client of a cluster would queue the command.
      if (client instanceof Cluster && client.status !== 'ready') throw new StoreUnavailable('unreachable');
      const reply = await within(command(client), commandTimeoutMs, failUnreachable);
      telemetry.commandSeconds.add((performance.now() - sentAt) / 1_000);
      return reply;
    } catch (error) {
      // The reply that a script is unknown is no fault: `script.ts` then sends the script.
      if (replyErrorCode(error) === 'NOSCRIPT') throw withoutArguments(error as Error);
      const fault = asStoreUnavailable(error, this.#connectionError);
      if (fault.reason === 'unreachable') {
        this.#noteFailure();
        this.#rediscover(replyErrorCode(error));
      }
      telemetry.emit({ type: 'store-command-failed', reason: fault.reason });
      throw fault;
    }
  };

  /** For how many milliseconds the store has answered; 0 while it does not. */
  get healthyForMs(): number {
    return this.#healthySinceMs === undefined ? 0 : performance.now() - this.#healthySinceMs;
  }

  /** Calls the listener whenever the store serves again after an outage. */
  onRecovered(listener: () => void): void {
    this.#recoveryListeners.push(listener);
  }

  close(): void {
    this.#isClosed = true;
    this.#healthySinceMs = undefined;
    this.#clearProbeTimer();
    this.#options.client.disconnect();
  }

  /** Looks for the right server again: the address may lead to another server by now, or a slot to another node. */
  #rediscover(code: string | undefined): void {
    const { client, onError } = this.#options;
    if (this.#isClosed) return;
    if (client instanceof Cluster) {
      if (client.status === 'ready') refreshSlots(client, onError);
    } else if (code === 'READONLY') client.disconnect(true);
  }

  /** A command was not answered, or the server cannot serve now, or the connection was lost. */
  #noteFailure(): void {
    this.#failures += 1;
    this.#failedAtMs = performance.now();
    if (this.#healthySinceMs !== undefined) this.#hasFailed = true; // the first connection does not count as a recovery
    this.#healthySinceMs = undefined;
    this.#probeSoon();
  }

  #probeSoon(): void {
    if (this.#probeTimer !== undefined || this.#isClosed) return;
    this.#probeTimer = setTimeout(() => {
      this.#probes += 1;
      detach('store', this.#probe());
    }, pauseAfter(this.#probes)).unref();
  }

  #clearProbeTimer(): void {
    clearTimeout(this.#probeTimer);
    this.#probeTimer = undefined;
  }

  async #probe(): Promise<void> {
    this.#clearProbeTimer();
    const quietMs = this.#options.client instanceof Cluster ? clusterQuietMs : 0;
    const before = this.#failures;
    const isServing = await this.#isServing();
    const isQuiet = this.#failures === before && performance.now() - this.#failedAtMs >= quietMs;
    if (this.#isClosed || this.#healthySinceMs !== undefined) return;
    if (!isServing || !isQuiet) return this.#probeSoon();
    this.#healthySinceMs = performance.now();
    this.#probes = 0;
    if (!this.#hasFailed) return;
    this.#hasFailed = false;
    for (const listener of this.#recoveryListeners) listener();
  }

  /** Resolves to true if the server takes writes. A cluster serves only if all of its masters answer. */
  async #isServing(): Promise<boolean> {
    const { client, probe } = this.#options;
    try {
      await this.run(probe);
      if (client instanceof Cluster)
        await this.run(() => Promise.all(client.nodes('master').map((master) => master.ping())));
      return true;
    } catch (cause) {
      return cause instanceof StoreUnavailable && cause.reason !== 'unreachable'; // an error reply is an answer too
    }
  }
}

/** Asks for the slots again. ioredis asks only now and then, and after MOVED, so it would notice a failover later. */
function refreshSlots(cluster: Cluster, onError: (cause: unknown) => void): void {
  cluster.refreshSlotsCache((error) => {
    if (error !== undefined && error !== null) onError(withoutArguments(error));
  });
}
