import { docsPage } from '../../../util/docs-page.ts';
import { replyErrorCode } from '../connection/reply-error.ts';

/** Why a Redis cannot be used, and what to do about it: the same words in `check` and in the log. */
export interface RedisTrouble {
  readonly detail: string;
  readonly help: string;
}

const reach =
  'Check that Redis runs, that this host can reach it, and that the scheme of --redis is right: rediss:// is TLS.';

/** By the code of the operating system, or of Redis' own reply. */
const byCode: ReadonlyMap<string, RedisTrouble> = new Map([
  [
    'ECONNREFUSED',
    {
      detail: 'The connection was refused: nothing listens at this address.',
      help: 'Start Redis, or correct the host and the port of --redis.',
    },
  ],
  ['ENOTFOUND', { detail: 'The host of Redis does not exist.', help: 'Correct the host of --redis.' }],
  ['EAI_AGAIN', { detail: 'The host name of Redis cannot be resolved.', help: 'Check DNS.' }],
  ...['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'].map((code) => [code, silent()] as const),
  ...['WRONGPASS', 'NOAUTH'].map((code) => [code, otherCredentials()] as const),
  [
    'OOM',
    { detail: 'The memory of Redis is full.', help: 'Give Redis more memory, and set maxmemory-policy noeviction.' },
  ],
  [
    'READONLY',
    { detail: 'This Redis is a read-only replica.', help: 'Set --redis to the master, or to the sentinels.' },
  ],
  ['LOADING', { detail: 'Redis is still loading its data.', help: 'Wait; the gateway retries.' }],
]);

/** Node.js' codes of what is wrong with TLS and certificates. */
const ofTls = /^ERR_(?:SSL|TLS)|CERT|SELF_SIGNED|^UNABLE_TO_/;

/** How deep causes are followed. */
const maxDepth = 5;

/**
 * Puts a fault of Redis or of the way to it into words. Only what is known to be harmless is taken from its text, since replies
 * can repeat arguments (P12).
 */
export function explainTrouble(cause: unknown): RedisTrouble {
  const error = deepest(cause);
  const code = codeIn(error);
  const known = byCode.get(code ?? '');
  if (known !== undefined) return known;
  if (code === 'NOPERM') return missingRight(error?.message ?? '');
  if (error?.name === 'ReplyError') {
    if (/^ERR invalid (?:username-)?password/.test(error.message)) return otherCredentials();
    return { detail: `Redis answered with the error ${code}.`, help: 'Set --log-level info,store=debug for details.' };
  }
  if (code !== undefined && ofTls.test(code))
    return {
      detail: `The TLS connection to Redis failed with ${code}.`,
      help: 'Check --redis-ca, --redis-cert and --redis-key.',
    };
  // Words of ioredis, which has no codes for these; where they change, what follows is still true.
  const text = error?.message ?? '';
  if (text.startsWith('All sentinels'))
    return {
      detail: 'No sentinel knows the master.',
      help: 'Check that the sentinels run, and that they know a master with the name in --redis.',
    };
  if (error?.name === 'StoreUnavailable' || text === 'Command timed out') return silent();
  return { detail: `There is no connection to Redis${code === undefined ? '' : ` (${code})`}.`, help: reach };
}

function silent(): RedisTrouble {
  return { detail: 'Redis does not answer.', help: reach };
}

function otherCredentials(): RedisTrouble {
  return {
    detail: 'Redis refused the user or the password of the URL.',
    help: 'Correct them in --redis or REDIS_URL.',
  };
}

/** What gateways of earlier versions did not need: users that were made for those lack it (docs/decisions/0069). */
const newestRights = '+xreadgroup +xgroup|create +xinfo|groups +xdel';

/** Redis names the command, but for one inside of a script (7.0). The names are its own words, and no arguments. */
function missingRight(text: string): RedisTrouble {
  const command = / permissions to run the '([a-z|]{1,40})' command/.exec(text)?.[1];
  return {
    detail:
      command === undefined
        ? 'The Redis user lacks a permission.'
        : `The Redis user lacks the permission to run ${command}.`,
    help: `Grant the permissions listed in ${docsPage('scaling.md')}. The newest are ${newestRights}.`,
  };
}

/** What everything else came of: of several nodes of a cluster the newest says what is wrong. */
function deepest(cause: unknown): Error | undefined {
  let error: unknown = cause;
  for (let depth = 0; depth < maxDepth; depth += 1) {
    const { cause: inner, lastNodeError } = error as { cause?: unknown; lastNodeError?: unknown };
    const next = inner ?? lastNodeError;
    if (!(next instanceof Error)) break;
    error = next;
  }
  return error instanceof Error ? error : undefined;
}

function codeIn(error: Error | undefined): string | undefined {
  return replyErrorCode(error) ?? (error !== undefined && 'code' in error ? String(error.code) : undefined);
}
