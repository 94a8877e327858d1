import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Instances, LeaseRenewal, MailboxBatch } from '../../instances.ts';
import { StoreUnavailable } from '../../store-unavailable.ts';
import { textOf } from '../codec.ts';
import type { Commands } from '../connection/commands.ts';
import type { Readers } from '../connection/readers.ts';
import { replyErrorCode } from '../connection/reply-error.ts';
import type { Keys } from '../keys.ts';
import type { Lifetimes } from '../lifetimes.ts';
import type { RunScript, ScriptReply } from '../script.ts';
import { type MailboxEntry, mailboxBytes, packMessages, parseMailboxEntry } from './mailbox-codec.ts';

/** The parts that the instances in Redis are built from. */
export interface RedisInstancesParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly readers: Readers;
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
  readonly leaseMs: number;
  readonly mailboxMaxBytes: number;
}

/** The leases and mailboxes in Redis. */
export interface RedisInstances extends Instances {
  /**
   * Reads all mailboxes from their beginning again. The data of a new master may end before the last delivery of the
   * old master.
   */
  rewind(): void;
}

/** How many entries one `receive` takes at most. Large entries make a few MiB, which arrive within the time-out. */
const entriesAtOnce = 8;

/** The position before the first entry of a mailbox. */
const beginning = { id: '0-0', totalBytes: '0' };

/** The last entry of a mailbox that has arrived here. */
interface Delivered extends Pick<MailboxEntry, 'id' | 'totalBytes'> {
  /** True if Redis may have delivered more entries, in replies that were lost. */
  readonly mayHaveLostReplies: boolean;
}

/** An entry of a stream: the id, and the fields with their values. */
type Entry = [ScriptReply, ScriptReply[]];

const enqueueOutcomes = ['posted', 'full', 'gone'] as const;

/** Stores leases as keys that expire, and each mailbox as a Redis Stream. */
export function createRedisInstances(parts: RedisInstancesParts): RedisInstances {
  const { run, runScript, readers, keys, lifetimes, leaseMs, mailboxMaxBytes } = parts;
  /** The last delivery from each mailbox. */
  const delivered = new Map<string, Delivered>();
  const lastDelivered = (name: string): Delivered => delivered.get(name) ?? { ...beginning, mayHaveLostReplies: true };

  /**
   * Reads the entries that Redis has not delivered yet, and marks them as delivered in the same step: `withdraw` relies
   * on that. Returns no entries if none came, or if the mailbox was lost and has been made again.
   */
  const readNew = async (name: string, waitMs: number): Promise<readonly MailboxEntry[]> => {
    const { lease, mailbox } = keys.instance(name);
    const until = performance.now() + waitMs;
    try {
      const entries = await readers.run(waitMs, (client, leftMs) => {
        const args = ['GROUP', 'r', 'r', 'COUNT', entriesAtOnce, 'BLOCK', leftMs, 'NOACK', 'STREAMS', mailbox, '>'];
        return client.callBuffer('xreadgroup', ...args) as Promise<[Buffer, Entry[]][] | null>;
      });
      return (entries?.[0]?.[1] ?? []).map(parseMailboxEntry);
    } catch (error) {
      delivered.set(name, { ...lastDelivered(name), mayHaveLostReplies: true });
      if (!(error instanceof StoreUnavailable) || replyErrorCode(error.cause) !== 'NOGROUP') throw error;
      const isOpen = await runScript('open-mailbox', [lease, mailbox], [lifetimes.mailboxMs]);
      if (isOpen !== 1) await delay(Math.max(0, until - performance.now()));
      return [];
    }
  };

  const readAgain = async (name: string, after: string): Promise<readonly MailboxEntry[]> => {
    const entries = await runScript('redeliver', [keys.instance(name).mailbox], [after, entriesAtOnce]);
    return (entries as Entry[]).map(parseMailboxEntry);
  };

  const readStoreGeneration = async (): Promise<Omit<LeaseRenewal, 'held'>> => {
    const candidate = randomBytes(12).toString('base64url');
    try {
      const [storeGeneration, dataAgeMs, nowMs] = (await runScript(
        'store-generation',
        [keys.storeGeneration],
        [candidate, lifetimes.storeGenerationMs],
      )) as [Buffer, number, number];
      return { storeGeneration: storeGeneration.toString(), dataAgeMs, leaseEndsMs: nowMs + leaseMs };
    } catch (error) {
      // A store that lost its data and is already full again: the new generation gets its name once there is room.
      if (error instanceof StoreUnavailable && error.reason === 'full')
        return { storeGeneration: '', dataAgeMs: 0, leaseEndsMs: 0 };
      throw error;
    }
  };

  return {
    async join(name) {
      const { lease, mailbox } = keys.instance(name);
      const [held, generation] = await Promise.all([
        runScript('join', [lease, mailbox], [leaseMs, lifetimes.mailboxMs]),
        readStoreGeneration(),
      ]);
      // An instance must be able to read its mailbox: with a Redis user that lacks a permission it must not seem ready.
      if (held === 1) {
        await readAgain(name, beginning.id);
        await readNew(name, 1);
      }
      // The messages of these reads are delivered again.
      delivered.set(name, { ...lastDelivered(name), mayHaveLostReplies: true });
      return { held: held === 1, ...generation };
    },

    async renew(name) {
      const { lease, mailbox, posted, freed } = keys.instance(name);
      const [state, generation] = await Promise.all([
        runScript('prolong', [lease, mailbox, posted, freed], [leaseMs, lifetimes.mailboxMs]),
        readStoreGeneration(),
      ]);
      return { held: textOf(state) === 'alive', ...generation };
    },

    async leave(name) {
      await run((client) => client.del(keys.instance(name).lease));
    },

    async areAlive(names) {
      // One command for each lease, since the leases of a cluster are in different slots. All commands are sent at
      // once.
      return Promise.all(names.map(async (name) => (await run((c) => c.get(keys.instance(name).lease))) === 'alive'));
    },

    async publishAddress(name, address) {
      await run((client) => client.set(keys.instance(name).address, address, 'PX', lifetimes.mailboxMs));
    },

    async addressOf(name) {
      return (await run((client) => client.get(keys.instance(name).address))) ?? undefined;
    },

    async declareDead(name) {
      const { lease, mailbox } = keys.instance(name);
      return (await runScript('declare-dead', [lease, mailbox], [lifetimes.deadMs])) === 1;
    },

    async enqueue(to, from, first, contents) {
      const { lease, mailbox, posted, freed } = keys.instance(to);
      const limits = [mailboxMaxBytes, lifetimes.mailboxMs];
      const args = [...limits, from, first, mailboxBytes(contents), packMessages(contents), contents.length];
      const code = (await runScript('enqueue', [lease, mailbox, posted, freed], args)) as number;
      return enqueueOutcomes[code - 1] ?? 'gone';
    },

    async receive(name, waitMs) {
      const before = lastDelivered(name);
      const repeated = before.mayHaveLostReplies ? await readAgain(name, before.id) : [];
      const mayHaveLostReplies = repeated.length > 0; // one reply may not have had all of them
      if (!mayHaveLostReplies) delivered.set(name, { ...before, mayHaveLostReplies });
      const entries = mayHaveLostReplies ? repeated : await readNew(name, waitMs);
      const last = entries.at(-1);
      if (last === undefined) return undefined;
      const { id, totalBytes } = last;
      delivered.set(name, { id, totalBytes, mayHaveLostReplies });
      return { messages: entries.flatMap(({ messages }) => messages), ackToken: `${id} ${totalBytes}` } as MailboxBatch;
    },

    async withdraw(name, from) {
      const { lease, mailbox } = keys.instance(name);
      const entries = (await runScript('withdraw', [lease, mailbox], [from])) as readonly number[];
      const numbers: number[] = [];
      for (let at = 0; at < entries.length; at += 2) {
        const [first = 0, count = 0] = entries.slice(at, at + 2);
        for (let number = first; number < first + count; number += 1) numbers.push(number);
      }
      return numbers;
    },

    async acknowledge(name, ackToken) {
      const { mailbox, posted, freed } = keys.instance(name);
      const [id = '', totalBytes = ''] = ackToken.split(' ');
      await runScript('discard', [mailbox, posted, freed], [nextId(id), totalBytes, lifetimes.mailboxMs]);
    },

    async backlog(name) {
      const { mailbox, posted } = keys.instance(name);
      const { id, totalBytes } = lastDelivered(name);
      const reply = await runScript('backlog', [mailbox, posted], [id, totalBytes]);
      const [bytes, oldestMs] = reply as [number, number];
      return { bytes, oldestMs };
    },

    rewind() {
      for (const name of delivered.keys()) delivered.set(name, { ...beginning, mayHaveLostReplies: true });
    },
  };
}

/** Returns the smallest id after this one. */
function nextId(id: string): string {
  const [ms = '', count = ''] = id.split('-');
  return `${ms}-${BigInt(count) + 1n}`;
}
