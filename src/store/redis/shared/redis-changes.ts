import { setTimeout as delay } from 'node:timers/promises';
import { contain, detach, reportFault } from '../../../util/boundary.ts';
import { type Changes, maxChangeBytes } from '../../shared/changes.ts';
import { ChangeSubscribers } from '../../shared/followers.ts';
import { StoreUnavailable } from '../../store-unavailable.ts';
import { textOf } from '../codec.ts';
import type { Commands } from '../connection/commands.ts';
import type { Readers } from '../connection/readers.ts';
import type { Keys } from '../keys.ts';
import type { Lifetimes } from '../lifetimes.ts';
import type { RunScript, ScriptReply } from '../script.ts';

/** What changes stand on. */
export interface RedisChangesParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly readers: Readers;
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
}

/** Changes, until they are closed. */
export interface RedisChanges extends Changes {
  close(): void;
}

/** So many changes are kept for who lags, at most 64 MiB; who lags more has missed some (P8). */
const maxKept = 1_024;

const readAtOnce = 64;
const waitMs = 5_000;
const pauseMs = 250;

/** Where a reader is: the entry behind which it reads, and the number of that. */
interface Position {
  readonly id: string;
  readonly number: number;
}

const beginning: Position = { id: '0-0', number: 0 };

/**
 * One Redis Stream for all topics, which an instance reads only while it follows something. The changes are numbered, so that
 * a reader knows what it has missed: what was dropped before it was read, or lost with the store's data.
 */
export function createRedisChanges({ run, runScript, readers, keys, lifetimes }: RedisChangesParts): RedisChanges {
  const followers = new ChangeSubscribers();
  let position: Position | undefined;
  let isReading = false;
  let isClosed = false;

  const readTail = async (): Promise<Position> => {
    const [last] = await run((client) => client.xrevrangeBuffer(keys.changes, '+', '-', 'COUNT', 1));
    return last === undefined ? beginning : parse(last as unknown as Entry);
  };

  const take = (entry: Entry): void => {
    const change = parse(entry);
    if (change.number !== (position ?? beginning).number + 1) followers.notifyMissed();
    position = change;
    followers.notify(change.topic, change.text);
  };

  /** An entry that cannot be read is passed over: it would be the next one for ever. */
  const pass = ([id]: Entry): void => {
    position = { ...(position ?? beginning), id: textOf(id) };
    followers.notifyMissed();
  };

  /** After a fault: what comes next may be behind what was read, or nothing of it is left. */
  const lookAgain = async (): Promise<void> => {
    const tail = await readTail();
    if (position === undefined || isBefore(position.id, tail.id) || position.id === tail.id) return;
    position = tail;
    followers.notifyMissed();
  };

  const readOn = async (): Promise<void> => {
    const after = (position as Position).id;
    const reply = await readers.run(waitMs, (client, leftMs) =>
      client.xreadBuffer('COUNT', readAtOnce, 'BLOCK', leftMs, 'STREAMS', keys.changes, after),
    );
    for (const entry of (reply?.[0]?.[1] ?? []) as unknown as Entry[]) {
      contain(
        'store',
        () => take(entry),
        () => pass(entry),
      );
    }
  };

  /** Reads as long as anybody follows. Faults are those of the store, which is asked again. */
  const read = async (): Promise<void> => {
    isReading = true;
    for (let isFault = false; !followers.isEmpty && !isClosed; ) {
      try {
        if (isFault) await lookAgain();
        isFault = false;
        await readOn();
      } catch (cause) {
        isFault = true;
        // An outage is told where commands are asked.
        if (!(cause instanceof StoreUnavailable)) reportFault('store', cause);
        await delay(pauseMs, undefined, { ref: false });
      }
    }
    isReading = false;
  };

  return {
    async publish(topic, text) {
      const told = text.length > maxChangeBytes ? text.subarray(0, maxChangeBytes + 1) : text;
      await runScript('announce', [keys.changes], [maxKept, lifetimes.changesMs, keys.topic(topic), told]);
    },

    async subscribe(topic, listener) {
      const tail = await readTail();
      // Who follows already may be behind: what came before is not for this one.
      let { number: after } = tail;
      const stop = followers.add(keys.topic(topic), {
        onChange(text) {
          if ((position as Position).number > after) listener.onChange(text);
        },
        onMissed() {
          after = 0; // the numbers may begin anew
          listener.onMissed();
        },
      });
      if (!isReading) {
        position = tail;
        detach('store', read());
      }
      return stop;
    },

    close() {
      isClosed = true;
      followers.clear();
    },
  };
}

/** An entry of the stream: its id, and its flat list of fields and values. */
type Entry = readonly [ScriptReply, readonly ScriptReply[]];

function parse([id, fields]: Entry): Position & { readonly topic: string; readonly text: Buffer } {
  const [, number, , topic, , text] = fields;
  return { id: textOf(id), number: Number(textOf(number)), topic: textOf(topic), text: text as Buffer };
}

function isBefore(a: string, b: string): boolean {
  const [aMs = '', aSeq = ''] = a.split('-');
  const [bMs = '', bSeq = ''] = b.split('-');
  return aMs === bMs ? BigInt(aSeq) < BigInt(bSeq) : BigInt(aMs) < BigInt(bMs);
}
