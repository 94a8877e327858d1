import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { compareLogPositions } from '../../../core/protocol/wire/event-id.ts';
import { ChangeSubscribers } from '../../../core/store/shared/followers.ts';
import { type Changes, maxChangeBytes } from '../../../core/store/shared/shared-data.ts';
import { failUnreachable, StoreUnavailable } from '../../../core/store/store-unavailable.ts';
import { contain, detach, reportFault } from '../../../core/util/boundary.ts';
import { within } from '../../../core/util/timing/within.ts';
import { parseLogPosition, textOf } from '../codec.ts';
import type { RedisClient } from '../connection/connect.ts';
import { asStoreUnavailable } from '../connection/reply-error.ts';
import { hashedName } from '../keys.ts';
import type { RedisAccess } from '../redis-access.ts';
import type { ScriptReply } from '../script.ts';

/** How many changes are kept for readers that lag, at most 64 MiB. A reader that lags further misses changes (P8). */
const maxKept = 1_024;

const readAtOnce = 64;
const waitMs = 5_000;
const pauseMs = 250;

/** How late a reply may be before the connection counts as dead: a blocked command on one may never settle by itself. */
const graceMs = 1_000;

/** The last entry that a reader has read, and that entry's number. */
interface ReadPosition {
  readonly id: string;
  readonly number: number;
}

const beginning: ReadPosition = { id: '0-0', number: 0 };

/**
 * Makes changes on one Redis Stream for all topics. An instance reads the stream only while it has subscribers. The
 * changes are numbered, so a reader notices missed ones. These were dropped before it read them, or lost with the
 * store's data.
 * @param connect makes a connection for reading, so that no other command waits behind a read that blocks
 * @returns the changes, and `reset` to leave a server that may not be the master any more
 */
export function createRedisChanges(
  { run, runScript, keys, lifetimes }: RedisAccess,
  connect: () => RedisClient,
): Changes & { reset(): void; close(): void } {
  const subscribers = new ChangeSubscribers();
  let position: ReadPosition | undefined;
  let isReading = false;
  let isClosed = false;
  /** Made for the first subscriber, and again after a fault. */
  let reader: RedisClient | undefined;

  const reset = (): void => {
    reader?.disconnect();
    reader = undefined;
  };

  const readTail = async (): Promise<ReadPosition> => {
    const [last] = await run((client) => client.xrevrangeBuffer(keys.changes, '+', '-', 'COUNT', 1));
    return last === undefined ? beginning : parse(last as unknown as Entry);
  };

  const deliver = (entry: Entry): void => {
    const change = parse(entry);
    if (change.number !== (position ?? beginning).number + 1) subscribers.notifyMissed();
    position = change;
    subscribers.notify(change.topic, change.text);
  };

  /** Skips an entry that cannot be parsed. Otherwise it would be the next one for ever. */
  const skip = ([id]: Entry): void => {
    position = { ...(position ?? beginning), id: textOf(id) };
    subscribers.notifyMissed();
  };

  /**
   * Moves the position back to the stream's tail if the stream is shorter after a fault: the store has lost entries.
   */
  const checkPosition = async (): Promise<void> => {
    const tail = await readTail();
    if (position === undefined) return;
    if (compareLogPositions(parseLogPosition(position.id), parseLogPosition(tail.id)) <= 0) return;
    position = tail;
    subscribers.notifyMissed();
  };

  /** Waits for the next entries. The state of a connection that failed is not known, so it is left. */
  const readEntries = async () => {
    reader ??= connect();
    const client = reader;
    const after = (position as ReadPosition).id;
    try {
      if (client.status !== 'ready') await once(client, 'ready', { signal: AbortSignal.timeout(waitMs) });
      const read = client.xreadBuffer('COUNT', readAtOnce, 'BLOCK', waitMs, 'STREAMS', keys.changes, after);
      return await within(read, waitMs + graceMs, failUnreachable);
    } catch (cause) {
      if (client.status === 'ready' && reader === client) reset();
      throw asStoreUnavailable(cause);
    }
  };

  const readBatch = async (): Promise<void> => {
    const reply = await readEntries();
    for (const entry of (reply?.[0]?.[1] ?? []) as unknown as Entry[]) {
      contain(
        'store',
        () => deliver(entry),
        () => skip(entry),
      );
    }
  };

  /** Reads as long as there are subscribers, and retries after a fault. */
  const readLoop = async (): Promise<void> => {
    isReading = true;
    for (let hasFailed = false; !subscribers.isEmpty && !isClosed; ) {
      try {
        if (hasFailed) await checkPosition();
        hasFailed = false;
        await readBatch();
      } catch (cause) {
        hasFailed = true;
        // The connections report an outage themselves.
        if (!(cause instanceof StoreUnavailable)) reportFault('store', cause);
        await delay(pauseMs, undefined, { ref: false });
      }
    }
    isReading = false;
  };

  return {
    async publish(topic, text) {
      // A text beyond the limit is sent cut, but still too long: each receiver then notifies its listeners of a loss.
      const sent = text.length > maxChangeBytes ? text.subarray(0, maxChangeBytes + 1) : text;
      await runScript('announce', [keys.changes], [maxKept, lifetimes.changesMs, hashedName(topic), sent]);
    },

    async subscribe(topic, listener) {
      const tail = await readTail();
      // The reader may lag: changes from before the subscription are not for this listener.
      let { number: after } = tail;
      const unsubscribe = subscribers.add(hashedName(topic), {
        onChange(text) {
          if ((position as ReadPosition).number > after) listener.onChange(text);
        },
        onMissed() {
          after = 0; // the numbers may have started again
          listener.onMissed();
        },
      });
      if (!isReading) {
        position = tail;
        detach('store', readLoop());
      }
      return unsubscribe;
    },

    reset,

    close() {
      isClosed = true;
      reset();
    },
  };
}

/** An entry of the stream: the id, and a flat list of fields and values. */
type Entry = readonly [ScriptReply, readonly ScriptReply[]];

function parse([id, fields]: Entry): ReadPosition & { readonly topic: string; readonly text: Buffer } {
  const [, number, , topic, , text] = fields;
  return { id: textOf(id), number: Number(textOf(number)), topic: textOf(topic), text: text as Buffer };
}
