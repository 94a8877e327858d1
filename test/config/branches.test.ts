import { expect, it } from 'vitest';
import { globalOptions } from '../../src/config/options/options.ts';
import { defaultsOf } from '../../src/config/sources/given-values.ts';
import { branchesOf } from '../../src/config/tree/branches.ts';

const branches = branchesOf({ ...defaultsOf(globalOptions), redis: 'redis://:CANARY@h:1', stateKey: ['CANARY'] });

it('a branch has the options of its place in the tree, also those below advanced', () => {
  expect(Object.keys(branches)).toEqual(['limits', 'timeouts', 'sse', 'replay', 'cluster']);
  expect(branches.sse).toEqual({
    keepAliveMs: 15_000,
    sseLingerMs: 60_000,
    upgradeAfterMs: 100,
    commitAfterMs: 15_000,
    streamMaxAgeMs: 0,
    retryMs: 2_000,
  });
  expect(branches.replay).toMatchObject({ logMaxEvents: 1000, storeSyncMs: 1_000 });
  expect(branches.cluster).toMatchObject({ leaseMs: 6_000, redisWaitMs: 5_000, mailboxMaxBytes: expect.any(Number) });
  expect(branches.timeouts).toMatchObject({ sessionIdleMs: 1_800_000, slowReaderMs: 30_000 });
});

it('no branch has an address or a secret', () => {
  const names = Object.values(branches).flatMap((branch) => Object.keys(branch));
  for (const other of ['host', 'port', 'redis', 'stateKey', 'apiKeysFile', 'tlsKey'])
    expect(names).not.toContain(other);
  expect(JSON.stringify(branches)).not.toContain('CANARY');
});
