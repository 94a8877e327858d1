import { ReplyError } from 'ioredis';
import { StoreUnavailable } from '../../store-unavailable.ts';

/** Codes of a server that is there and cannot serve now: it loads, follows a master, waits for its cluster, runs a script. */
const unreachableCodes = new Set([
  ...[
    'READONLY',
    'LOADING',
    'MASTERDOWN',
    'CLUSTERDOWN',
    'MOVED',
    'ASK',
    'TRYAGAIN',
    'BUSY',
    'UNBLOCKED',
    'NOREPLICAS',
  ],
]);

/** Redis 6.2 puts a frame around what a command inside of a script was answered; the code is in it, as the command had it. */
const framed = /^(?:ERR Error running script |@user_script: ).*?: -([A-Z]+)\s/;

/** Redis 7.0 gives no code where a script does what its user may not. */
const denied = /^ERR The user executing the script can't /;

/** The protocol code at the beginning of an error reply; undefined for what is no reply: no connection, or a time-out. */
export function replyErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !(error instanceof ReplyError)) return undefined;
  if (denied.test(error.message)) return 'NOPERM';
  return framed.exec(error.message)?.[1] ?? /^[A-Z]+(?=\s|$)/.exec(error.message)?.[0] ?? 'ERR';
}

/**
 * What a failed command means. Only the protocol's code decides, never the rest of the text. Arguments are taken out of
 * the cause: they hold the contents of messages, and those of AUTH a password (P12).
 * @param lost why there is no connection, which the commands that need one do not know
 */
export function asStoreUnavailable(error: unknown, lost?: Error): StoreUnavailable {
  const code = replyErrorCode(error);
  if (code === undefined && lost !== undefined) return new StoreUnavailable('unreachable', lost);
  if (error instanceof StoreUnavailable) return error;
  if (error instanceof Error) withoutArguments(error);
  if (code === undefined || unreachableCodes.has(code)) return new StoreUnavailable('unreachable', error);
  return new StoreUnavailable(code === 'OOM' ? 'full' : 'refused', error);
}

/** ioredis hangs the whole command onto its errors. */
export function withoutArguments<E extends Error>(error: E): E {
  delete (error as { command?: unknown }).command;
  return error;
}
