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

/** What the instances stand on. */
export interface RedisInstancesParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly readers: Readers;
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
  readonly leaseMs: number;
  readonly mailboxMaxBytes: number;
}

/** Leases and mailboxes. */
export interface RedisInstances extends Instances {
  /** Reads mailboxes from their beginning again: the data of a new master may go on before what the old one handed out. */
  rewind(): void;
}

/** Posts that one `receive` takes at most: with large ones a few MiB, which come within the time-out. */
const postsAtOnce = 8;

/** The place before the first entry of a mailbox. */
const nothing = { id: '0-0', totalBytes: '0' };

/** What has arrived of a mailbox. */
interface Arrived extends Pick<MailboxEntry, 'id' | 'totalBytes'> {
  /** Redis may have given out more, in replies that were lost. */
  readonly isDoubtful: boolean;
}

/** An entry of a stream: its id, and its fields with their values. */
type Entry = [ScriptReply, ScriptReply[]];

const postOutcomes = ['posted', 'full', 'gone'] as const;

/** Leases as keys that expire, and a Redis Stream for each mailbox. */
export function createRedisInstances(parts: RedisInstancesParts): RedisInstances {
  const { run, runScript, readers, keys, lifetimes, leaseMs, mailboxMaxBytes } = parts;
  /** The last entry that was handed out of each mailbox, and the bytes ever posted up to it. */
  const handedOut = new Map<string, Arrived>();
  const arrivedOf = (name: string): Arrived => handedOut.get(name) ?? { ...nothing, isDoubtful: true };

  /**
   * Reads what Redis has not given out yet, and marks it as given in the same step: `withdraw` relies on that. Undefined if
   * nothing came, or the mailbox was lost and has been made again.
   */
  const readNew = async (name: string, waitMs: number): Promise<readonly MailboxEntry[]> => {
    const { lease, mailbox } = keys.instance(name);
    const until = performance.now() + waitMs;
    try {
      const entries = await readers.run(waitMs, (client, leftMs) => {
        const place = ['GROUP', 'r', 'r', 'COUNT', postsAtOnce, 'BLOCK', leftMs, 'NOACK', 'STREAMS', mailbox, '>'];
        return client.callBuffer('xreadgroup', ...place) as Promise<[Buffer, Entry[]][] | null>;
      });
      return (entries?.[0]?.[1] ?? []).map(parseMailboxEntry);
    } catch (error) {
      handedOut.set(name, { ...arrivedOf(name), isDoubtful: true });
      if (!(error instanceof StoreUnavailable) || replyErrorCode(error.cause) !== 'NOGROUP') throw error;
      const isOpen = await runScript('open-mailbox', [lease, mailbox], [lifetimes.mailboxMs]);
      if (isOpen !== 1) await delay(Math.max(0, until - performance.now()));
      return [];
    }
  };

  const readAgain = async (name: string, after: string): Promise<readonly MailboxEntry[]> => {
    const entries = await runScript('redeliver', [keys.instance(name).mailbox], [after, postsAtOnce]);
    return (entries as Entry[]).map(parseMailboxEntry);
  };

  const lifeOfData = async (): Promise<Omit<LeaseRenewal, 'held'>> => {
    const word = randomBytes(12).toString('base64url');
    try {
      const [birth, ageMs] = (await runScript(
        'store-generation',
        [keys.storeGeneration],
        [word, lifetimes.storeGenerationMs],
      )) as [Buffer, number];
      return { storeGeneration: birth.toString(), dataAgeMs: ageMs };
    } catch (error) {
      // A store that lost its data and is full already: its new life gets its name when there is room for it.
      if (error instanceof StoreUnavailable && error.reason === 'full') return { storeGeneration: '', dataAgeMs: 0 };
      throw error;
    }
  };

  return {
    async join(name) {
      const { lease, mailbox } = keys.instance(name);
      const [held, life] = await Promise.all([
        runScript('join', [lease, mailbox], [leaseMs, lifetimes.mailboxMs]),
        lifeOfData(),
      ]);
      // Only one that can read its mailbox is ready: an instance whose user lacks a right must not pass for the next one.
      if (held === 1) {
        await readAgain(name, nothing.id);
        await readNew(name, 1);
      }
      handedOut.set(name, { ...arrivedOf(name), isDoubtful: true }); // a letter that came by this is given again
      return { held: held === 1, ...life };
    },

    async renew(name) {
      const { lease, mailbox, posted, freed } = keys.instance(name);
      const [state, life] = await Promise.all([
        runScript('prolong', [lease, mailbox, posted, freed], [leaseMs, lifetimes.mailboxMs]),
        lifeOfData(),
      ]);
      return { held: textOf(state) === 'alive', ...life };
    },

    async leave(name) {
      await run((client) => client.del(keys.instance(name).lease));
    },

    async areAlive(names) {
      // One by one: in a cluster they are in different slots. They go out together all the same.
      return Promise.all(names.map(async (name) => (await run((c) => c.get(keys.instance(name).lease))) === 'alive'));
    },

    async declareDead(name) {
      return (await runScript('declare-dead', [keys.instance(name).lease], [lifetimes.deadMs])) === 1;
    },

    async enqueue(to, from, first, contents) {
      const { lease, mailbox, posted, freed } = keys.instance(to);
      const limits = [mailboxMaxBytes, lifetimes.mailboxMs];
      const args = [...limits, from, first, mailboxBytes(contents), packMessages(contents), contents.length];
      const code = (await runScript('enqueue', [lease, mailbox, posted, freed], args)) as number;
      return postOutcomes[code - 1] ?? 'gone';
    },

    async receive(name, waitMs) {
      const arrived = arrivedOf(name);
      const again = arrived.isDoubtful ? await readAgain(name, arrived.id) : [];
      const isDoubtful = again.length > 0; // there may be more
      if (!isDoubtful) handedOut.set(name, { ...arrived, isDoubtful });
      const posts = isDoubtful ? again : await readNew(name, waitMs);
      const last = posts.at(-1);
      if (last === undefined) return undefined;
      const { id, totalBytes } = last;
      handedOut.set(name, { id, totalBytes, isDoubtful });
      return { messages: posts.flatMap(({ letters }) => letters), ackToken: `${id} ${totalBytes}` } as MailboxBatch;
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

    async acknowledge(name, receipt) {
      const { mailbox, posted, freed } = keys.instance(name);
      const [id = '', totalBytes = ''] = receipt.split(' ');
      await runScript('discard', [mailbox, posted, freed], [following(id), totalBytes, lifetimes.mailboxMs]);
    },

    async backlog(name) {
      const { mailbox, posted } = keys.instance(name);
      const { id, totalBytes } = arrivedOf(name);
      const reply = await runScript('backlog', [mailbox, posted], [id, totalBytes]);
      const [bytes, oldestMs] = reply as [number, number];
      return { bytes, oldestMs };
    },

    rewind() {
      for (const name of handedOut.keys()) handedOut.set(name, { ...nothing, isDoubtful: true });
    },
  };
}

/** The smallest id behind one. */
function following(id: string): string {
  const [ms = '', count = ''] = id.split('-');
  return `${ms}-${BigInt(count) + 1n}`;
}
