import { SessionExists, type SessionRecords, type TakeOver } from '../../session-records.ts';
import {
  firstTakeoverPauseMs,
  freeTakeovers,
  longestTakeoverPauseMs,
  maxTakeovers,
  takeoverWindowMs,
} from '../../takeover-limit.ts';
import { parseRecord, parseState, recordArguments, stateArguments } from '../codec.ts';
import type { Commands } from '../connection/commands.ts';
import type { Keys, SessionKeys } from '../keys.ts';
import type { Lifetimes } from '../lifetimes.ts';
import type { RunScript, ScriptReply } from '../script.ts';

/** The parts that the records in Redis are built from. */
export interface RedisRecordsParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
}

/** How many sessions are renewed at once. Other commands of this process wait behind no more than these (P8). */
const renewAtOnce = 100;

const changeOutcomes = new Map([
  [1, 'done'],
  [3, 'fenced'],
  [4, 'no_record'],
] as const);

/** Stores the record of each session as a hash. */
export function createRedisRecords({ run, runScript, keys, lifetimes }: RedisRecordsParts): SessionRecords {
  const { logMs, recordMs } = lifetimes;

  return {
    async create(key, record, { followsEnded = false } = {}) {
      const args = [...recordArguments(record), recordMs, Number(followsEnded), record.clientSaid];
      const code = await runScript('create', allKeys(keys.session(key)), args);
      // Two sessions under one key would give the events of one to the other (P11).
      if (code !== 1) throw new SessionExists();
    },

    async find(key) {
      const fields = ['epoch', 'owner', 'head', 'initialize', 'initialized', 'state', 'said'];
      const found = await run((client) => client.hmgetBuffer(keys.session(key).record, ...fields));
      return found[0] == null ? undefined : parseRecord(found as ScriptReply[]);
    },

    async amend(key, epoch, { clientState, clientSaid }) {
      const { record, tails, pending } = keys.session(key);
      const changed = [...(clientState ? ['state', clientState] : []), ...(clientSaid ? ['said', clientSaid] : [])];
      return toChangeOutcome(await runScript('amend', [record, tails, pending], [epoch, recordMs, ...changed]));
    },

    async register(key, record, tail, log, { term, displacesUntilMs } = { term: 0 }) {
      const args = [
        ...recordArguments(record),
        tail,
        log.newestStream,
        logMs,
        recordMs,
        ...stateArguments(log),
        record.clientSaid,
        term,
        displacesUntilMs ?? '',
      ];
      const code = await runScript('register', allKeys(keys.session(key)), args);
      return registrationOutcomes[(code as number) - 1] ?? 'fenced';
    },

    async takeOver(key, from, owner): Promise<TakeOver> {
      const pauses = [freeTakeovers, firstTakeoverPauseMs, longestTakeoverPauseMs];
      const args = [from.owner, from.epoch, owner, maxTakeovers, ...pauses, takeoverWindowMs, logMs, recordMs];
      const reply = (await runScript('take-over', allKeys(keys.session(key)), args)) as readonly ScriptReply[];
      const [code, ...fields] = reply;
      if (code === 2) return { outcome: 'moved' };
      if (code === 3) return { outcome: 'unknown' };
      if (code === 4) return { outcome: 'worn_out' };
      if (code === 5) return { outcome: 'paused', pauseMs: fields[0] as number };
      const [newest = null, tails = null, pending = null] = fields.slice(7);
      return { outcome: 'taken', record: parseRecord(fields), log: parseState(newest, tails, pending) };
    },

    async confirmTakeover(key, epoch) {
      return toChangeOutcome(await runScript('progress', [keys.session(key).record], [epoch]));
    },

    async release(key, epoch) {
      const { record, tails, pending } = keys.session(key);
      return toChangeOutcome(await runScript('release', [record, tails, pending], [epoch, recordMs]));
    },

    async renew(sessionKeys) {
      for (let at = 0; at < sessionKeys.length; at += renewAtOnce) {
        const batch = sessionKeys.slice(at, at + renewAtOnce).map((key) => {
          const { record, tails, pending } = keys.session(key);
          return runScript('renew', [record, tails, pending], [recordMs]);
        });
        await Promise.all(batch);
      }
    },

    async end(key, epoch) {
      await runScript('end', allKeys(keys.session(key)), [epoch ?? '', recordMs]);
    },
  };
}

const registrationOutcomes = ['registered', 'fenced', 'ended', 'outdated'] as const;

const allKeys = ({ record, log, tails, pending }: SessionKeys): string[] => [record, log, tails, pending];

function toChangeOutcome(code: ScriptReply): 'done' | 'fenced' | 'no_record' {
  const outcome = changeOutcomes.get(code as 1 | 3 | 4);
  if (outcome === undefined) throw new Error(`a script answered with the unknown code ${code}`);
  return outcome;
}
