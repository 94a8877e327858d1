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

/** What the records stand on. */
export interface RedisRecordsParts {
  readonly run: Commands['run'];
  readonly runScript: RunScript;
  readonly keys: Keys;
  readonly lifetimes: Lifetimes;
}

/** Sessions whose renewal is in flight at once: what else this process does waits behind no more of them (P8). */
const renewAtOnce = 100;

const changes = new Map([
  [1, 'done'],
  [3, 'fenced'],
  [4, 'no_record'],
] as const);

/** The records of sessions, one hash each. */
export function createRedisRecords({ run, runScript, keys, lifetimes }: RedisRecordsParts): SessionRecords {
  const { logMs, recordMs } = lifetimes;

  return {
    async create(key, record, { followsEnded = false } = {}) {
      const args = [...recordArguments(record), recordMs, Number(followsEnded), record.clientSaid];
      const code = await runScript('create', allOf(keys.session(key)), args);
      // Going on would give the events of one session to another (P11).
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
      return changeOf(await runScript('amend', [record, tails, pending], [epoch, recordMs, ...changed]));
    },

    async register(key, record, tail, log, term = 0) {
      const args = [
        ...recordArguments(record),
        tail,
        log.newestStream,
        logMs,
        recordMs,
        ...stateArguments(log),
        record.clientSaid,
        term,
      ];
      const code = await runScript('register', allOf(keys.session(key)), args);
      return registrations[(code as number) - 1] ?? 'fenced';
    },

    async takeOver(key, from, owner): Promise<TakeOver> {
      const pauses = [freeTakeovers, firstTakeoverPauseMs, longestTakeoverPauseMs];
      const args = [from.owner, from.epoch, owner, maxTakeovers, ...pauses, takeoverWindowMs, logMs, recordMs];
      const reply = (await runScript('take-over', allOf(keys.session(key)), args)) as readonly ScriptReply[];
      const [code, ...fields] = reply;
      if (code === 2) return { outcome: 'moved' };
      if (code === 3) return { outcome: 'unknown' };
      if (code === 4) return { outcome: 'worn_out' };
      if (code === 5) return { outcome: 'paused', pauseMs: fields[0] as number };
      const [newest = null, tails = null, pending = null] = fields.slice(7);
      return { outcome: 'taken', record: parseRecord(fields), log: parseState(newest, tails, pending) };
    },

    async confirmTakeover(key, epoch) {
      return changeOf(await runScript('progress', [keys.session(key).record], [epoch]));
    },

    async release(key, epoch) {
      const { record, tails, pending } = keys.session(key);
      return changeOf(await runScript('release', [record, tails, pending], [epoch, recordMs]));
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
      await runScript('end', allOf(keys.session(key)), [epoch ?? '', recordMs]);
    },
  };
}

const registrations = ['registered', 'fenced', 'ended', 'outdated'] as const;

const allOf = ({ record, log, tails, pending }: SessionKeys): string[] => [record, log, tails, pending];

function changeOf(code: ScriptReply): 'done' | 'fenced' | 'no_record' {
  const outcome = changes.get(code as 1 | 3 | 4);
  if (outcome === undefined) throw new Error(`a script answered with the unknown code ${code}`);
  return outcome;
}
