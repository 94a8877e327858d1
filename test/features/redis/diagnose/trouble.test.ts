import { ReplyError } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { addressOf } from '../../../../src/config/redis-url.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { explainTrouble } from '../../../../src/features/redis/diagnose/trouble.ts';

const ofSystem = (code: string): Error => Object.assign(new Error(`connect ${code} 10.0.0.1:6379`), { code });

describe('what is wrong with Redis', () => {
  it.each<[string, Error | undefined, RegExp]>([
    ['nothing listens', ofSystem('ECONNREFUSED'), /nothing listens/],
    // Both addresses of a name refuse: Node.js says no word of it.
    ['nothing listens at any', Object.assign(new AggregateError([], ''), { code: 'ECONNREFUSED' }), /nothing listens/],
    ['no such host', ofSystem('ENOTFOUND'), /host of Redis does not exist/],
    ['no route', ofSystem('EHOSTUNREACH'), /does not answer/],
    ['a connection that breaks', ofSystem('ECONNRESET'), /no connection to Redis \(ECONNRESET\)/],
    ['no answer in time', new StoreUnavailable('unreachable'), /does not answer/],
    ['no answer at all', undefined, /does not answer/],
    ['a command whose connection was lost', new Error('Connection is closed.'), /no connection to Redis\.$/],
    ['another password', new ReplyError('WRONGPASS invalid username-password pair'), /user or the password/],
    ['a missing password', new ReplyError('NOAUTH Authentication required.'), /user or the password/],
    [
      'a missing right',
      new ReplyError("NOPERM User ada has no permissions to run the 'xgroup|create' command"),
      /lacks the permission to run xgroup\|create\.$/,
    ],
    [
      'a missing right of a script in Redis 7.2',
      new ReplyError("NOPERM ACL failure in script: User ada has no permissions to run the 'xdel' command"),
      /lacks the permission to run xdel\.$/,
    ],
    [
      'a missing right of a script in Redis 7.0',
      new ReplyError(
        "ERR The user executing the script can't run this command or subcommand script: 76, on @user_script:1.",
      ),
      /lacks a permission/,
    ],
    [
      'a key of others',
      new ReplyError('NOPERM this user has no permissions to access one of the keys used as arguments'),
      /lacks a permission/,
    ],
    ['no memory', new ReplyError('OOM command not allowed'), /memory of Redis is full/],
    ['a full disk', new ReplyError('MISCONF Redis is configured to save RDB snapshots'), /save its data/],
    ['too few replicas', new ReplyError('NOREPLICAS Not enough good replicas to write.'), /replicas/],
    ['a replica', new ReplyError("READONLY You can't write against a read only replica."), /replica/],
    ['another error', new ReplyError("ERR unknown command 'x', with args beginning with: 'ada'"), /the error ERR\.$/],
    ['a certificate', ofSystem('DEPTH_ZERO_SELF_SIGNED_CERT'), /^The TLS connection to Redis failed with DEPTH_ZERO/],
    ['no sentinel', new Error('All sentinels are unreachable. Retrying from scratch'), /^No sentinel/],
    [
      'no node of a cluster',
      Object.assign(new Error(), { lastNodeError: ofSystem('ECONNREFUSED') }),
      /nothing listens/,
    ],
  ])('%s is told in words of our own, with what to do', (_, cause, detail) => {
    const told = explainTrouble(new StoreUnavailable('unreachable', cause));
    expect(told.detail).toMatch(detail);
    expect(told.help).toMatch(/^[A-Z-].*\.$/);
    expect(JSON.stringify(told)).not.toMatch(/ada|10\.0\.0\.1|undefined/); // no user, no argument (P12)
  });
});

describe('the address of Redis', () => {
  it.each([
    ['redis://ada:secret@redis.example/3', 'redis.example:6379'],
    ['rediss://:secret@[::1]:6380', '[::1]:6380'],
    ['redis+sentinel://ada:secret@one,two:7/main', 'one:26379, two:7'],
  ])('%s has neither user nor password', (url, address) => expect(addressOf(url)).toBe(address));
});
