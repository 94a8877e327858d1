import { failUnreachable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { within } from '../../../core/util/timing/within.ts';
import type { RedisClient } from './connect.ts';
import { asStoreUnavailable, withoutArguments } from './reply-error.ts';

/** The connection for blocking commands, so that no other command waits behind them. It serves one at a time. */
export interface BlockingReader {
  /**
   * Runs a command that blocks for at most the given time. Settles a little after that even if the connection is dead: a
   * blocked command on a dead connection may never settle by itself.
   */
  run<T>(waitMs: number, command: (client: RedisClient, waitMs: number) => Promise<T>): Promise<T>;
  /** Drops the connection, since it may lead to a server that is no longer the master. */
  reset(): void;
  close(): void;
}

/** How late a reply may be before the connection counts as dead. */
const graceMs = 1_000;

/** Connects for the first command, and again after a fault. */
export function createBlockingReader(connect: () => RedisClient, onError: (cause: unknown) => void): BlockingReader {
  let client: RedisClient | undefined;
  /** Ends the current call. A client that is dropped while it connects would never settle it. */
  let endCall: (() => void) | undefined;
  let isClosed = false;
  /** The reason why there is no connection. */
  let connectionError: Error | undefined;

  const open = (): RedisClient => {
    const opened = connect();
    opened.on('error', (cause: Error) => {
      connectionError = withoutArguments(cause);
      onError(connectionError);
    });
    opened.on('ready', () => {
      connectionError = undefined;
    });
    return opened;
  };
  const reset = (): void => {
    client?.disconnect();
    client = undefined;
    endCall?.();
  };

  return {
    async run(waitMs, command) {
      if (isClosed) throw new StoreUnavailable('unreachable');
      client ??= open();
      const ended = new Promise<never>((_, reject) => {
        endCall = () => reject(new StoreUnavailable('unreachable'));
      });
      try {
        const endMs = performance.now() + waitMs;
        await Promise.race([readyWithin(client, waitMs + graceMs), ended]);
        // The remaining time must not be 0, which blocks for ever.
        const leftMs = Math.max(1, Math.ceil(endMs - performance.now()));
        return await Promise.race([within(command(client, leftMs), leftMs + graceMs, failUnreachable), ended]);
      } catch (error) {
        reset(); // the state of the connection is unknown
        throw asStoreUnavailable(error, connectionError);
      } finally {
        endCall = undefined;
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
