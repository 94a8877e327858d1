import { Cluster } from 'ioredis';
import type { CommandObserver } from '../../command-observer.ts';
import { StoreUnavailable } from '../../store-unavailable.ts';
import type { RedisClient } from './connect.ts';
import { createHealth, type Health } from './health.ts';
import { asStoreUnavailable, replyErrorCode, withoutArguments } from './reply-error.ts';
import { within } from './within.ts';

/** The connection for everything that does not block. */
export interface Commands {
  /** Runs a command. Settles within the command time-out; every failure is a `StoreUnavailable`. */
  run<T>(command: (client: RedisClient) => Promise<T>): Promise<T>;
  readonly health: Health;
  close(): void;
}

/** What the connection needs. */
export interface CommandsOptions {
  readonly client: RedisClient;
  /** The time-out of this client's commands. */
  readonly commandTimeoutMs: number;
  /** See `createHealth`. */
  readonly probe: (client: RedisClient) => Promise<unknown>;
  /** Told of each fault of the connection, for logs. */
  readonly onError: (cause: unknown) => void;
  readonly observer?: CommandObserver | undefined;
}

/** How much later than its own time-out a command of a cluster is given up. */
const graceMs = 250;

/** Wraps a client: each outcome tells of the health of the store, and each fault gets its name. */
export function createCommands(options: CommandsOptions): Commands {
  const { client, commandTimeoutMs, probe, onError, observer } = options;
  let isClosed = false;
  /** Why there is no connection. */
  let lost: Error | undefined;

  /** The address may lead to another server by now, or the slots to another node. */
  const lookAgain = (code: string | undefined): void => {
    if (isClosed) return;
    if (client instanceof Cluster) {
      if (client.status === 'ready') refreshSlots(client, onError);
    } else if (code === 'READONLY') client.disconnect(true);
  };

  const fail = (error: unknown): StoreUnavailable => {
    const code = replyErrorCode(error);
    const fault = asStoreUnavailable(error, lost);
    if (fault.reason !== 'unreachable') {
      health.answered(); // it answered, if not what was hoped for
      return fault;
    }
    health.failed();
    lookAgain(code);
    return fault;
  };

  /** What the client of a cluster would hold for as long as it likes: commands while it has no node. */
  const send = async <T>(cluster: Cluster, command: (client: RedisClient) => Promise<T>): Promise<T> => {
    if (cluster.status !== 'ready') throw new StoreUnavailable('unreachable');
    return within(command(cluster), commandTimeoutMs + graceMs);
  };

  const run = async <T>(command: (client: RedisClient) => Promise<T>): Promise<T> => {
    const sentAt = performance.now();
    try {
      const reply = client instanceof Cluster ? await send(client, command) : await command(client);
      health.answered();
      observer?.answered(performance.now() - sentAt);
      return reply;
    } catch (error) {
      // A script that is not there is an answer too, and no fault.
      if (replyErrorCode(error) === 'NOSCRIPT') throw withoutArguments(error as Error);
      const fault = fail(error);
      observer?.failed(fault.reason);
      throw fault;
    }
  };

  const health = createHealth(() => run(probe));
  client.on('error', (cause: Error) => {
    lost = withoutArguments(cause);
    onError(lost);
  });
  client.on('node error', (cause: Error) => onError(withoutArguments(cause))); // of a cluster
  client.on('ready', () => {
    lost = undefined;
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

/** ioredis asks only now and then, and after MOVED; a failover is seen sooner if it asks after a command that got lost. */
function refreshSlots(cluster: Cluster, onError: (cause: unknown) => void): void {
  cluster.refreshSlotsCache((error) => {
    if (error !== undefined && error !== null) onError(withoutArguments(error));
  });
}
