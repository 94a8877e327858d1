import { z } from 'zod';
import { parseRedisUrl } from '../../store/redis/redis-url.ts';
import { file, integer, list, matching, type Option, text } from './option-kinds.ts';
import { largestTotalBytes, longestMs, mebibyte, minute, second } from './units.ts';

const redisUrl = z.string({ error: 'must be a URL' }).superRefine((url, context) => {
  try {
    parseRedisUrl(url);
  } catch (cause) {
    context.addIssue({ code: 'custom', message: (cause as Error).message });
  }
});

/** Options of what several instances share; a part of `globalOptions`. */
export const sharedOptions = {
  redis: text<string | undefined>(undefined, redisUrl, 'URL of a Redis that instances share, also REDIS_URL.', {
    inHelp: true,
  }),
  redisPrefix: text(
    'gangway',
    matching(/^[A-Za-z0-9._:-]{1,64}$/, 'must be 1 to 64 letters, digits and . _ : -'),
    'What all keys in Redis begin with; instances with the same one share their sessions.',
  ),
  redisCa: text<string | undefined>(
    undefined,
    file,
    'File with the certificates (PEM) that a rediss:// server is checked against.',
  ),
  redisCert: text<string | undefined>(
    undefined,
    file,
    'File with the certificate (PEM) of this client for a rediss:// server.',
  ),
  redisKey: text<string | undefined>(undefined, file, 'File with the key (PEM) of that certificate.'),
  redisTimeoutMs: integer(second, [10, longestMs], 'Milliseconds after which Redis counts as not answering.'),
  redisWaitMs: integer(
    5 * second,
    [1, longestMs],
    'Milliseconds that a request waits for Redis before it gets 503; nothing of it has reached the server then.',
  ),
  leaseMs: integer(
    6 * second,
    [100, longestMs],
    'Milliseconds without a sign of life after which other instances take over the sessions of one.',
  ),
  leaseRenewMs: integer(2 * second, [10, longestMs], 'Milliseconds between the signs of life of an instance.'),
  leaseMarginMs: integer(
    second,
    [1, longestMs],
    'Milliseconds before the end of its lease from which on an instance says nothing that is not in the log.',
  ),
  recordTtlMs: integer(
    60 * minute,
    [1, longestMs],
    'Milliseconds that Redis keeps a session that no instance holds any more.',
  ),
  mailboxMaxBytes: integer(
    64 * mebibyte,
    [1, largestTotalBytes],
    'Bytes that other instances may have waiting for one instance.',
  ),
  stateKey: {
    ...list(
      matching(/^[^,\s]{32,}$/, 'must be at least 32 characters without commas and blanks'),
      'Secret that protects the requestState of modern clients, the same on all instances; the first for new ones, others still open. If not given, one is made, and shared by Redis.',
    ),
    inHelp: false,
  },
} as const satisfies Readonly<Record<string, Option>>;
