import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../../src/config/config.ts';

const read = (argv: readonly string[], env: Record<string, string> = {}) => {
  const result = readConfiguration({ argv: [...argv, '--', 'x'], env, readFile: () => '' });
  if (result.ok && !('config' in result)) throw new Error(result.command);
  return result;
};
const warningsOf = (argv: readonly string[], env?: Record<string, string>) => {
  const result = read(argv, env);
  return result.ok ? result.warnings : result.faults;
};

describe('quotas', () => {
  it('are not there unless they are given', () => {
    const result = read([]);
    if (!result.ok) throw new Error(JSON.stringify(result));
    const { user, total } = result.config.limits;
    const given = Object.entries({ ...user, ...total }).filter(([, value]) => value !== undefined);
    expect(given).toEqual([['sessions', 1000]]);
  });

  it('of users without authentication are warned of, all in one', () => {
    const limits = ['--limits.user.sessions', '5', '--limits.user.inFlight', '9999999B'];
    expect(warningsOf(limits)).toEqual([
      'Without authentication the gateway cannot tell users apart, so these options have no effect: --limits.user.sessions, --limits.user.inFlight.',
    ]);
    expect(warningsOf(limits, { GANGWAY_API_KEYS: `alice:sha256:${'0'.repeat(64)}` })).toEqual([]);
    expect(warningsOf(['--limits.total.startsPerMinute', '5'])).toEqual([]);
  });

  it.each(['limits.user.inFlight', 'limits.total.inFlight'])('have room for the largest body: --%s', (name) => {
    const result = read([`--${name}`, '1000B']);
    if (result.ok) throw new Error('taken');
    expect(result.faults).toEqual([
      {
        path: `--${name}`,
        message: expect.stringContaining('must not be smaller than --limits.request.body, which is 4MiB'),
      },
    ]);
    expect(read([`--${name}`, '1000B', '--limits.request.body', '1000B']).ok).toBe(true);
  });
});
