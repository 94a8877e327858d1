import { Cluster } from 'ioredis';
import type { StoreTelemetry } from '../../../core/store/store-events.ts';
import { failUnreachable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { within } from '../../../core/util/timing/within.ts';
import type { RedisClient } from './connect.ts';
import { createHealth, type Health } from './health.ts';
import { asStoreUnavailable, replyErrorCode, withoutArguments } from './reply-error.ts';

/** The connection for commands that do not block. */
export interface Commands {
  /** Runs a command. Settles within the command time-out; every failure is a `StoreUnavailable`. */
  run<T>(command: (client: RedisClient) => Promise<T>): Promise<T>;
  readonly health: Health;
  close(): void;
}

/** The client and time-out of the connection, and who is told of its commands. */
export interface CommandsOptions {
  readonly client: RedisClient;
  /** How long a command may take. What has arrived in time counts, however busy the gateway was. */
  readonly commandTimeoutMs: number;
  /** See `createHealth`. */
  readonly probe: (client: RedisClient) => Promise<unknown>;
  /** Receives each fault of the connection, for logs. */
  readonly onError: (cause: unknown) => void;
  readonly telemetry?: StoreTelemetry | undefined;
}

/** A failover of one master can make its slots fail now and then. See `createHealth`. */
const clusterQuietMs = 1_000;

/** Wraps a client. Each failure updates the health of the store, and each fault becomes a `StoreUnavailable`. */
export function createCommands(options: CommandsOptions): Commands {
  const { client, commandTimeoutMs, probe, onError, telemetry } = options;
  let isClosed = false;
  /** The reason why there is no connection. */
  let connectionError: Error | undefined;

  /** Looks for the right server again: the address may lead to another server by now, or a slot to another node. */
  const rediscover = (code: string | undefined): void => {
    if (isClosed) return;
    if (client instanceof Cluster) {
      if (client.status === 'ready') refreshSlots(client, onError);
    } else if (code === 'READONLY') client.disconnect(true);
  };

  const handleFailure = (error: unknown): StoreUnavailable => {
    const code = replyErrorCode(error);
    const fault = asStoreUnavailable(error, connectionError);
    if (fault.reason !== 'unreachable') return fault;
    health.failed();
    rediscover(code);
    return fault;
  };

  const run = async <T>(command: (client: RedisClient) => Promise<T>): Promise<T> => {
    const sentAt = performance.now();
    try {
      // Without a node, the client of a cluster would queue the command.
      if (client instanceof Cluster && client.status !== 'ready') throw new StoreUnavailable('unreachable');
      const reply = await within(command(client), commandTimeoutMs, failUnreachable);
      telemetry?.commandSeconds.add((performance.now() - sentAt) / 1_000);
      return reply;
    } catch (error) {
      // The reply that a script is unknown is no fault: `script.ts` then sends the script.
      if (replyErrorCode(error) === 'NOSCRIPT') throw withoutArguments(error as Error);
      const fault = handleFailure(error);
      telemetry?.emit({ type: 'store-command-failed', reason: fault.reason });
      throw fault;
    }
  };

  /** Resolves to true if the server takes writes. A cluster serves only if all of its masters answer. */
  const isServing = async (): Promise<boolean> => {
    try {
      await run(probe);
      if (client instanceof Cluster)
        await run(() => Promise.all(client.nodes('master').map((master) => master.ping())));
      return true;
    } catch (cause) {
      return cause instanceof StoreUnavailable && cause.reason !== 'unreachable'; // an error reply is an answer too
    }
  };

  const health = createHealth(isServing, client instanceof Cluster ? clusterQuietMs : 0);
  client.on('error', (cause: Error) => {
    connectionError = withoutArguments(cause);
    onError(connectionError);
  });
  client.on('node error', (cause: Error) => onError(withoutArguments(cause))); // only a cluster emits this
  client.on('ready', () => {
    connectionError = undefined;
    health.connected();
  });
  client.on('close', () => health.failed());

  return {
    run,
    health,
    close() {
      isClosed = true;
      health.close();
      client.disconnect();
    },
  };
}

/** Asks for the slots again. ioredis asks only now and then, and after MOVED, so it would notice a failover later. */
function refreshSlots(cluster: Cluster, onError: (cause: unknown) => void): void {
  cluster.refreshSlotsCache((error) => {
    if (error !== undefined && error !== null) onError(withoutArguments(error));
  });
}
