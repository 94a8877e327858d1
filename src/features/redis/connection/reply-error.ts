import { StoreUnavailable } from '../../../core/store/store-unavailable.ts';

/**
 * Codes of a server that cannot serve now: it loads, follows a master, waits for its cluster or its replicas, runs a
 * script, or cannot save to its disk.
 */
const unreachableCodes = new Set([
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
  'MISCONF',
]);

/** Redis 6.2 wraps the error reply of a command inside a script. The wrapped text contains the code of that command. */
const wrapped = /^(?:ERR Error running script |@user_script: ).*?: -([A-Z]+)\s/;

/** Redis 7.0 gives no code if a script runs a command that its user may not run. */
const denied = /^ERR The user executing the script can't /;

/** Returns the protocol code of an error reply; undefined for an error that is no reply, such as a time-out. */
export function replyErrorCode(error: unknown): string | undefined {
  // By name, because `explainTrouble` is part of every start, and ioredis is not.
  if (!(error instanceof Error) || error.name !== 'ReplyError') return undefined;
  if (denied.test(error.message)) return 'NOPERM';
  return wrapped.exec(error.message)?.[1] ?? /^[A-Z]+(?=\s|$)/.exec(error.message)?.[0] ?? 'ERR';
}

/**
 * Classifies the failure of a command. Only the protocol's code decides, never the rest of the text. Arguments are
 * removed from the cause: they contain messages, and those of AUTH a password (P12).
 * @param connectionError the reason why there is no connection, which the error of a single command does not have
 */
export function asStoreUnavailable(error: unknown, connectionError?: Error): StoreUnavailable {
  const code = replyErrorCode(error);
  if (code === undefined && connectionError !== undefined) return new StoreUnavailable('unreachable', connectionError);
  if (error instanceof StoreUnavailable) return error;
  if (error instanceof Error) withoutArguments(error);
  if (code === undefined || unreachableCodes.has(code)) return new StoreUnavailable('unreachable', error);
  return new StoreUnavailable(code === 'OOM' ? 'full' : 'refused', error);
}

/** Removes the command from an error. ioredis attaches the whole command with its arguments. */
export function withoutArguments<E extends Error>(error: E): E {
  delete (error as { command?: unknown }).command;
  return error;
}
