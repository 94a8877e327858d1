import { randomBytes } from 'node:crypto';
import type { Delivery, Instances, Renewal } from '../instances.ts';
import { StoreUnavailable } from '../store-unavailable.ts';
import { textOf } from './codec.ts';
import type { Commands } from './commands.ts';
import type { Keys } from './keys.ts';
import { type Post, packContents, parsePost, sizeOf } from './letters.ts';
import type { Lifetimes } from './lifetimes.ts';
import type { Readers } from './readers.ts';
import type { RunScript, ScriptReply } from './script.ts';

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

const postOutcomes = ['posted', 'full', 'gone'] as const;

/** Leases as keys that expire, and a Redis Stream for each mailbox. */
export function createRedisInstances(parts: RedisInstancesParts): RedisInstances {
  const { run, runScript, readers, keys, lifetimes, leaseMs, mailboxMaxBytes } = parts;
  /** The last entry that was handed out of each mailbox, and the bytes ever posted up to it. */
  const handedOut = new Map<string, Pick<Post, 'id' | 'totalBytes'>>();

  const lifeOfData = async (): Promise<Omit<Renewal, 'held'>> => {
    const word = randomBytes(12).toString('base64url');
    try {
      const [birth, ageMs] = (await runScript('birth', [keys.birth], [word, lifetimes.birthMs])) as [Buffer, number];
      return { birth: birth.toString(), dataAgeMs: ageMs };
    } catch (error) {
      // A store that lost its data and is full already: its new life gets its name when there is room for it.
      if (error instanceof StoreUnavailable && error.reason === 'full') return { birth: '', dataAgeMs: 0 };
      throw error;
    }
  };

  return {
    async join(name) {
      const [held, life] = await Promise.all([runScript('join', [keys.instance(name).lease], [leaseMs]), lifeOfData()]);
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

    async post(to, from, first, contents) {
      const { lease, mailbox, posted, freed } = keys.instance(to);
      const limits = [mailboxMaxBytes, lifetimes.mailboxMs];
      const args = [...limits, from, first, sizeOf(contents), packContents(contents)];
      const code = (await runScript('post', [lease, mailbox, posted, freed], args)) as number;
      return postOutcomes[code - 1] ?? 'gone';
    },

    async receive(name, waitMs) {
      const { mailbox } = keys.instance(name);
      const after = (handedOut.get(name) ?? nothing).id;
      const entries = await readers.run(waitMs, (client, leftMs) =>
        client.xreadBuffer('COUNT', postsAtOnce, 'BLOCK', leftMs, 'STREAMS', mailbox, after),
      );
      const posts = ((entries?.[0]?.[1] ?? []) as [ScriptReply, ScriptReply[]][]).map(parsePost);
      const last = posts.at(-1);
      if (last === undefined) return undefined;
      const { id, totalBytes } = last;
      handedOut.set(name, { id, totalBytes });
      return { letters: posts.flatMap(({ letters }) => letters), receipt: `${id} ${totalBytes}` } as Delivery;
    },

    async discard(name, receipt) {
      const { mailbox, posted, freed } = keys.instance(name);
      const [id = '', totalBytes = ''] = receipt.split(' ');
      await runScript('discard', [mailbox, posted, freed], [following(id), totalBytes, lifetimes.mailboxMs]);
    },

    async waiting(name) {
      const { mailbox, posted } = keys.instance(name);
      const { id, totalBytes } = handedOut.get(name) ?? nothing;
      const reply = await runScript('waiting', [mailbox, posted], [id, totalBytes]);
      const [bytes, oldestMs] = reply as [number, number];
      return { bytes, oldestMs };
    },

    rewind() {
      handedOut.clear();
    },
  };
}

/** The smallest id behind one. */
function following(id: string): string {
  const [ms = '', count = ''] = id.split('-');
  return `${ms}-${BigInt(count) + 1n}`;
}
