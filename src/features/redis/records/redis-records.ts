import {
  SessionExists,
  type SessionRecord,
  type SessionRecords,
  type TakeOver,
} from '../../../core/store/session-records.ts';
import {
  firstTakeoverPauseMs,
  freeTakeovers,
  longestTakeoverPauseMs,
  maxTakeovers,
  takeoverWindowMs,
} from '../../../core/store/takeover-limit.ts';
import {
  fieldOf,
  parseRecord,
  parseState,
  pendingArguments,
  type RecordVersions,
  recordFields,
  tailArguments,
  textOf,
} from '../codec.ts';
import type { SessionKeys } from '../keys.ts';
import type { RedisAccess } from '../redis-access.ts';
import type { ScriptArgument, ScriptReply } from '../script.ts';

/** How many sessions are renewed at once. Other commands of this process wait behind no more than these (P8). */
const renewAtOnce = 100;

const changeOutcomes = new Map([
  [1, 'done'],
  [3, 'fenced'],
  [4, 'no_record'],
] as const);

/** Stores the record of each session as a hash. */
export function createRedisRecords(access: RedisAccess, versions: RecordVersions): SessionRecords {
  const { run, runScript, keys } = access;
  const { logMs, recordMs } = access.lifetimes;

  /** Changes a record; see `change.lua`. */
  const change = async (key: string, how: Parameters<typeof named>[0], fields: readonly ScriptArgument[] = []) => {
    const { record, tails, pending } = keys.session(key);
    return toChangeOutcome(
      await runScript('change', [record, tails, pending], [named({ ...how, recordMs }), ...fields]),
    );
  };

  return {
    async create(key, record, { followsEnded = false } = {}) {
      const args = named({ ...ownerOf(record), recordMs, followsEnded });
      const code = await runScript('create', allKeys(keys.session(key)), [args, ...recordFields(record, versions)]);
      // Two sessions under one key would give the events of one to the other (P11).
      if (code !== 1) throw new SessionExists();
    },

    async find(key) {
      const hash = await run((client) => client.hgetallBuffer(keys.session(key).record));
      return parseRecord(Object.entries(hash).flat() as Buffer[], versions);
    },

    async amend(key, epoch, changes) {
      return change(key, { epoch: String(epoch) }, Object.entries(changes).flat() as Buffer[]);
    },

    async register(key, record, tail, log, { term, displacesUntilMs } = { term: 0 }) {
      const lists = {
        fields: recordFields(record, versions),
        tails: tailArguments(log),
        pending: pendingArguments(log),
      };
      const args = named({
        ...ownerOf(record),
        term,
        displacesUntilMs,
        tail: String(tail),
        newest: log.newestStream,
        logMs,
        recordMs,
        ...Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.length])),
      });
      const code = await runScript('register', allKeys(keys.session(key)), [args, ...Object.values(lists).flat()]);
      return registrationOutcomes[(code as number) - 1] ?? 'fenced';
    },

    async takeOver(key, from, owner): Promise<TakeOver> {
      const pauses = { firstPauseMs: firstTakeoverPauseMs, longestPauseMs: longestTakeoverPauseMs };
      const limits = { maxTakeovers, freeTakeovers, ...pauses, windowMs: takeoverWindowMs };
      const { oldest, newest } = versions;
      const args = named({ ...ownerOf(from), newOwner: owner, oldest, newest, ...limits, logMs, recordMs });
      const reply = (await runScript('take-over', allKeys(keys.session(key)), [args])) as readonly ScriptReply[];
      const [code, hash = null, tails = null, pending = null] = reply;
      if (code === 2) return { outcome: 'moved' };
      if (code === 3) return { outcome: 'unknown' };
      if (code === 4) return { outcome: 'worn_out' };
      if (code === 5) return { outcome: 'paused', pauseMs: hash as number };
      const record = parseRecord(hash, versions) as SessionRecord;
      // The new owner amends the record, which has one version as a whole.
      if (Number(textOf(fieldOf(hash, 'version'))) !== versions.written)
        await change(key, { epoch: String(record.epoch), mustFit: true }, recordFields(record, versions));
      return { outcome: 'taken', record, log: parseState(fieldOf(hash, 'newest'), tails, pending) };
    },

    async confirmTakeover(key, epoch) {
      return change(key, { epoch: String(epoch), removes: 'takeovers' });
    },

    async release(key, epoch) {
      // A draining instance must be able to release its sessions.
      return change(key, { epoch: String(epoch), mustFit: true }, ['owner', '']);
    },

    async renew(sessionKeys) {
      for (let at = 0; at < sessionKeys.length; at += renewAtOnce)
        await Promise.all(sessionKeys.slice(at, at + renewAtOnce).map((key) => change(key, { mustFit: true })));
    },

    async end(key, epoch) {
      const args = named({ epoch: epoch && String(epoch), recordMs });
      await runScript('end', allKeys(keys.session(key)), [args]);
    },
  };
}

/** The arguments of a script by name. A number that a script makes text of is text here: Lua would round it. */
const named = (args: Readonly<Record<string, string | number | boolean | undefined>>): string => JSON.stringify(args);

/** The owner that a script compares. */
const ownerOf = ({ epoch, owner }: Pick<SessionRecord, 'epoch' | 'owner'>) => ({ epoch: String(epoch), owner });

const registrationOutcomes = ['registered', 'fenced', 'ended', 'outdated'] as const;

const allKeys = ({ record, log, tails, pending }: SessionKeys): string[] => [record, log, tails, pending];

function toChangeOutcome(code: ScriptReply): 'done' | 'fenced' | 'no_record' {
  const outcome = changeOutcomes.get(code as 1 | 3 | 4);
  if (outcome === undefined) throw new Error(`a script answered with the unknown code ${code}`);
  return outcome;
}
