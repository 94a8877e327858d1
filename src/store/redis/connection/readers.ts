import { within } from '../../../util/timing/within.ts';
import { failUnreachable, StoreUnavailable } from '../../store-unavailable.ts';
import type { RedisClient } from './connect.ts';
import { asStoreUnavailable, withoutArguments } from './reply-error.ts';

/** A command that blocks for at most `waitMs`. */
export type BlockingCommand<T> = (client: RedisClient, waitMs: number) => Promise<T>;

/**
 * The connections for blocking commands. Each connection serves one call at a time, so no other call waits behind it.
 */
export interface Readers {
  /**
   * Runs a command that blocks for at most `waitMs`. Settles a little after that even if the connection is dead: a
   * blocked command on a dead connection may never settle by itself.
   */
  run<T>(waitMs: number, command: BlockingCommand<T>): Promise<T>;
  /** Drops all connections, since they may lead to a server that is no longer the master. */
  reset(): void;
  close(): void;
}

/** How late a reply may be before the connection counts as dead. */
const graceMs = 1_000;

/** Makes connections on demand: mostly one, and two while an instance changes its name. */
export function createReaders(connect: () => RedisClient, onError: (cause: unknown) => void): Readers {
  const idle: RedisClient[] = [];
  /**
   * All connections, each with a function that ends its current call. A client that is dropped while it connects would
   * never settle the call.
   */
  const all = new Map<RedisClient, (() => void) | undefined>();
  let isClosed = false;
  /** The reason why there is no connection. */
  let connectionError: Error | undefined;

  const open = (): RedisClient => {
    const client = connect();
    client.on('error', (cause: Error) => {
      connectionError = withoutArguments(cause);
      onError(connectionError);
    });
    client.on('ready', () => {
      connectionError = undefined;
    });
    all.set(client, undefined);
    return client;
  };
  const drop = (client: RedisClient): void => {
    const endCall = all.get(client);
    all.delete(client);
    client.disconnect();
    endCall?.();
  };
  const reset = (): void => {
    idle.length = 0;
    for (const client of [...all.keys()]) drop(client);
  };

  const runOn = async <T>(client: RedisClient, waitMs: number, command: BlockingCommand<T>): Promise<T> => {
    const endMs = performance.now() + waitMs;
    await readyWithin(client, waitMs + graceMs);
    // The remaining time must not be 0, which blocks for ever.
    const leftMs = Math.max(1, Math.ceil(endMs - performance.now()));
    return within(command(client, leftMs), leftMs + graceMs, failUnreachable);
  };

  return {
    async run(waitMs, command) {
      if (isClosed) throw new StoreUnavailable('unreachable');
      const client = idle.pop() ?? open();
      const dropped = new Promise<never>((_, reject) => {
        all.set(client, () => reject(new StoreUnavailable('unreachable')));
      });
      try {
        const reply = await Promise.race([runOn(client, waitMs, command), dropped]);
        all.set(client, undefined);
        idle.push(client);
        return reply;
      } catch (error) {
        drop(client); // the state of the connection is unknown
        throw asStoreUnavailable(error, connectionError);
      }
    },
    reset,
    close() {
      isClosed = true;
      reset();
    },
  };
}

/** Resolves when the client can send. */
async function readyWithin(client: RedisClient, ms: number): Promise<void> {
  if (client.status === 'ready') return;
  let onReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    onReady = resolve;
    client.once('ready', onReady);
  });
  await within(ready, ms, failUnreachable).finally(() => client.off('ready', onReady));
}
