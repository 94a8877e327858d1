import type { Explanation } from '../../../app/features/stores.ts';
import { docsPage } from '../../../core/util/docs-page.ts';
import { replyErrorCode } from '../connection/reply-error.ts';

const reach =
  'Check that Redis is running, that this host can reach it, and that --redis has the right scheme: rediss:// for TLS.';

/** The troubles by the code of the operating system or of Redis' reply. */
const byCode: ReadonlyMap<string, Explanation> = new Map([
  [
    'ECONNREFUSED',
    {
      detail: 'The connection was refused: nothing listens at this address.',
      help: 'Start Redis, or correct the host and the port of --redis.',
    },
  ],
  ['ENOTFOUND', { detail: 'The host of Redis does not exist.', help: 'Correct the host of --redis.' }],
  ['EAI_AGAIN', { detail: 'The host name of Redis cannot be resolved.', help: 'Check DNS.' }],
  ...['ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'].map((code) => [code, noAnswer()] as const),
  ...['WRONGPASS', 'NOAUTH'].map((code) => [code, refusedCredentials()] as const),
  [
    'OOM',
    { detail: 'The memory of Redis is full.', help: 'Give Redis more memory, and set maxmemory-policy noeviction.' },
  ],
  [
    'READONLY',
    { detail: 'This Redis is a read-only replica.', help: 'Set --redis to the master, or to the sentinels.' },
  ],
  [
    'MISCONF',
    {
      detail: 'Redis takes no writes, because it cannot save its data to disk.',
      help: "Look into Redis' log, and give it a disk with space that it may write to.",
    },
  ],
  [
    'NOREPLICAS',
    {
      detail: 'Redis takes no writes, because it has too few replicas.',
      help: 'Start its replicas, or lower min-replicas-to-write.',
    },
  ],
  ['LOADING', { detail: 'Redis is still loading its data.', help: 'Wait; the gateway retries.' }],
]);

/** Node.js' codes for faults of TLS and certificates. */
const tlsCode = /^ERR_(?:SSL|TLS)|CERT|SELF_SIGNED|^UNABLE_TO_/;

/** How many nested causes are followed. */
const maxDepth = 5;

/**
 * Explains a fault of Redis or of the connection to it. The explanation repeats only known harmless parts of the
 * fault's text, since replies can contain arguments (P12).
 */
export function explainTrouble(cause: unknown): Explanation {
  const error = rootCause(cause);
  const code = codeIn(error);
  const known = byCode.get(code ?? '');
  if (known !== undefined) return known;
  if (code === 'NOPERM') return missingPermission(error?.message ?? '');
  if (error?.name === 'ReplyError') {
    if (/^ERR invalid (?:username-)?password/.test(error.message)) return refusedCredentials();
    return { detail: `Redis answered with the error ${code}.`, help: 'Set --log-level info,store=debug for details.' };
  }
  if (code !== undefined && tlsCode.test(code))
    return {
      detail: `The TLS connection to Redis failed with ${code}.`,
      help: 'Check --cluster.tls.ca, --cluster.tls.cert and --cluster.tls.key.',
    };
  // ioredis has no codes for these faults, only texts. If the texts change, the answer below is still true.
  const text = error?.message ?? '';
  if (text.startsWith('All sentinels'))
    return {
      detail: 'No sentinel knows the master.',
      help: 'Check that the sentinels are running and know a master with the name in --redis.',
    };
  if (error?.name === 'StoreUnavailable') return noAnswer();
  return { detail: `There is no connection to Redis${code === undefined ? '' : ` (${code})`}.`, help: reach };
}

function noAnswer(): Explanation {
  return { detail: 'Redis does not answer.', help: reach };
}

function refusedCredentials(): Explanation {
  return {
    detail: 'Redis refused the user or the password of the URL.',
    help: 'Correct the user and the password in --redis or REDIS_URL.',
  };
}

/**
 * Explains a missing permission. Redis names the command, except one inside a script (7.0). A command name is Redis'
 * own text and contains no argument.
 */
function missingPermission(text: string): Explanation {
  const command = / permissions to run the '([a-z|]{1,40})' command/.exec(text)?.[1];
  return {
    detail:
      command === undefined
        ? 'The Redis user lacks a permission.'
        : `The Redis user lacks the permission to run ${command}.`,
    help: `Grant the permissions listed in ${docsPage('scaling.md')}.`,
  };
}

/** Follows the causes to the original error. For a cluster, the error of the last node counts. */
function rootCause(cause: unknown): Error | undefined {
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
