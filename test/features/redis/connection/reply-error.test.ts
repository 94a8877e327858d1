import { ReplyError } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { asStoreUnavailable, replyErrorCode } from '../../../../src/features/redis/connection/reply-error.ts';

const reply = (message: string): Error => Object.assign(new ReplyError(message), { command: { args: ['secret'] } });

describe('an error of Redis', () => {
  it.each([
    ['OOM command not allowed when used memory > maxmemory', 'full'],
    ['@user_script: 31: -OOM command not allowed when used memory', 'full'], // 6.2
    ['ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -OOM command not allowed', 'full'], // 6.2
    ["READONLY You can't write against a read only replica.", 'unreachable'],
    ['MISCONF Redis is configured to save RDB snapshots, but it is unable to persist to disk.', 'unreachable'],
    ['LOADING Redis is loading the dataset in memory', 'unreachable'],
    ['CLUSTERDOWN Hash slot not served', 'unreachable'],
    ['MOVED 1 127.0.0.1:1', 'unreachable'],
    ['NOPERM this user has no permissions', 'refused'],
    ['WRONGTYPE Operation OOM LOADING', 'refused'],
    ['ERR OOM in the text decides nothing', 'refused'],
    ['no code at all', 'refused'],
  ])('is told by its code: %s', (message, reason) => {
    const fault = asStoreUnavailable(reply(message));
    expect(fault.reason).toBe(reason);
    expect(JSON.stringify({ ...(fault.cause as Error) })).not.toContain('secret');
  });

  it('says that a right is missing, also of a script in Redis 7.0, which gives no code', () => {
    const inScript =
      "ERR The user executing the script can't run this command or subcommand script: 7, on @user_script:1.";
    expect([inScript, 'NOPERM this user has no permissions'].map((text) => replyErrorCode(reply(text)))).toEqual([
      'NOPERM',
      'NOPERM',
    ]);
  });

  it('is unreachable where there is no reply', () => {
    expect(asStoreUnavailable(new Error('OOM Command timed out')).reason).toBe('unreachable');
    expect(replyErrorCode(new Error('NOSCRIPT'))).toBeUndefined();
  });
});
