import { readdir, readFile } from 'node:fs/promises';
import { scrape } from '../support/metrics.ts';
import { listProcesses, type ProcessInfo } from '../support/processes.ts';
import type { Reply } from '../support/resp.ts';
import { withDeadline } from '../support/wait-for.ts';
import type { Ledger } from './ledger.ts';
import { keptMs, type Stage } from './stage.ts';

/** What one gateway uses. */
export interface Used {
  readonly pid: number;
  readonly rssBytes: number;
  readonly descriptors: number;
  readonly children: number;
  /** These are undefined while the gateway cannot be asked: it is frozen, or not there. */
  readonly heapBytes: number | undefined;
  /** Buffers, which are not in the heap. */
  readonly externalBytes: number | undefined;
  readonly sessions: number | undefined;
  /** Requests in flight in its sessions. */
  readonly calls: number | undefined;
}

/** What Redis holds. */
export interface Kept {
  readonly usedBytes: number;
  /** By kind; see `kindOf`. */
  readonly keys: ReadonlyMap<string, number>;
  /** The kinds of keys that have no TTL. */
  readonly withoutTtl: ReadonlyMap<string, number>;
}

/** Each instance that lost its lease leaves one, for a day: its name must never be used again. */
export const deadMarks = 'instance:lease:dead';

/** What lives for an hour after the last write (`recordTtlMs`); that it has a TTL is checked. */
const lastingKinds: ReadonlySet<string> = new Set(['session:record', 'session:tails', 'session:pending', 'owner']);
const hourMs = 3_600_000;

/**
 * The kind of a key: `session:record`, `instance:lease`, … The record of a session that has ended is only a mark, which lives
 * for an hour: `session:record:ended`. What nobody has written for longer than a session may be idle is left to expire, as
 * that of a client whose instance was killed and that never came back: `session:record:left`.
 * @param key with what the script adds to it
 */
export function kindOf(key: string, ttlMs: number): string {
  const kind = key
    .replace(/^gangway:/, '')
    .replace(/:?\{[^}]*\}/, '')
    .replace(/:[\w-]{43}$/, '');
  return lastingKinds.has(kind) && ttlMs > 0 && ttlMs < hourMs - keptMs ? `${kind}:left` : kind;
}

/** True for what may still be there when all clients are gone. */
export const isLasting = (kind: string): boolean => lastingKinds.has(kind) || isExpiring(kind);

/** True for what nobody needs any more, and what expires by itself within an hour. */
const isExpiring = (kind: string): boolean => /:(?:ended|left)$/.test(kind);

const countOf = ({ redis }: Pick<Sample, 'redis'>, matches: (kind: string) => boolean): number =>
  [...(redis?.keys ?? [])].reduce((sum, [kind, count]) => sum + (matches(kind) ? count : 0), 0);

/** How many keys wait for their end. */
export const expiringKeys = (sample: Pick<Sample, 'redis'>): number => countOf(sample, isExpiring);

/** How many keys somebody needs. These must not become more. */
export const neededKeys = (sample: Pick<Sample, 'redis'>): number =>
  countOf(sample, (kind) => kind !== deadMarks && !isExpiring(kind));

export interface Sample {
  readonly atMs: number;
  /** By instance; undefined for one that is not there. */
  readonly gateways: readonly (Used | undefined)[];
  readonly redis: Kept | undefined;
  /** Processes of this run that belong to no gateway, in this sample and in the one before. */
  readonly orphans: readonly ProcessInfo[];
}

/** Takes samples, the first one as the base to which the end is compared. */
export function createSampler(stage: Stage, ledger: Ledger) {
  const startedAt = performance.now();
  const samples: Sample[] = [];
  let suspects = new Set<string>();
  const nameOf = ({ pid, started }: ProcessInfo): string => `${pid} ${started}`;

  const take = async (): Promise<Sample> => {
    const { cluster, upstream, adminPorts, marker } = stage;
    const all = (await listProcesses()).filter(({ isZombie }) => !isZombie);
    const owners = new Set([upstream.pid, process.pid, ...cluster.instances.map(({ pid }) => pid)]);
    const isOwned = (one: ProcessInfo): boolean => {
      for (let at: ProcessInfo | undefined = one; at !== undefined; ) {
        const { pid, ppid }: ProcessInfo = at;
        if (owners.has(pid) || owners.has(ppid)) return true;
        at = all.find((other) => other.pid === ppid);
      }
      return false;
    };
    const strays = all.filter((one) => one.command.includes(marker) && !isOwned(one));
    const orphans = strays.filter((one) => suspects.has(nameOf(one)));
    suspects = new Set(strays.map(nameOf));
    for (const { pid, command } of orphans) ledger.fail(`process ${pid} belongs to no gateway: ${command}`);
    const gateways = await Promise.all(
      cluster.instances.map(({ pid }, index) => usedBy(pid, adminPorts[index] as number, all)),
    );
    const redis = await withDeadline(kept(stage), { deadlineMs: 3_000 }).catch(() => undefined); // it is paused, or not there
    const sample = { atMs: performance.now() - startedAt, gateways, redis, orphans };
    samples.push(sample);
    return sample;
  };
  return { samples, take };
}

async function usedBy(pid: number, adminPort: number, all: readonly ProcessInfo[]): Promise<Used | undefined> {
  try {
    // The servers are children of the starter, which is a child of the gateway.
    const parents = new Set([pid, ...all.filter(({ ppid }) => ppid === pid).map((child) => child.pid)]);
    const status = await readFile(`/proc/${pid}/status`, 'latin1');
    const [, residentKib] = /^VmRSS:\s+(\d+)/m.exec(status) ?? [];
    if (residentKib === undefined) return undefined; // it was killed, and its parent has not noticed that yet
    const descriptors = (await readdir(`/proc/${pid}/fd`)).length;
    const scraped = await withDeadline(scrape(adminPort), { deadlineMs: 2_000 }).catch(() => undefined);
    return {
      pid,
      descriptors,
      rssBytes: Number(residentKib) * 1_024,
      children: all.filter(({ ppid }) => parents.has(ppid)).length,
      heapBytes: scraped?.value('nodejs_heap_size_used_bytes'),
      externalBytes: scraped?.value('nodejs_external_memory_bytes'),
      sessions: scraped?.value('mcp_gangway_sessions'),
      calls: scraped?.value('mcp_gangway_session_calls'),
    };
  } catch {
    return undefined; // it has just been killed
  }
}

const script = `
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local isDead = key:find(':lease$') and redis.call('GET', key) == 'dead'
  local hasEnded = key:find(':record$') and redis.call('HEXISTS', key, 'ended') == 1
  table.insert(found, key .. (isDead and ':dead' or hasEnded and ':ended' or '') .. ' ' .. redis.call('PTTL', key))
end
return found`;

async function kept({ cluster: { redis } }: Stage): Promise<Kept> {
  const lines = (await redis.command('EVAL', script, '0')) as readonly Reply[];
  const keys = new Map<string, number>();
  const withoutTtl = new Map<string, number>();
  for (const line of lines) {
    const [key = '', ttl] = String(line).split(' ');
    const kind = kindOf(key, Number(ttl));
    keys.set(kind, (keys.get(kind) ?? 0) + 1);
    if (Number(ttl) === -1) withoutTtl.set(kind, (withoutTtl.get(kind) ?? 0) + 1);
  }
  const usedBytes = Number(/^used_memory:(\d+)/m.exec(await redis.cli('INFO', 'memory'))?.[1]);
  return { usedBytes, keys, withoutTtl };
}
