import { describe, expect } from 'vitest';
import { withCounting } from '../resume/counting.ts';
import { randomCutLimits, testRandomCuts } from '../resume/random-cuts.ts';
import { violationsOf } from '../support/log-checker.ts';
import { readLogs } from '../support/session-logs.ts';
import { failuresOf, startFastCluster } from './fast.ts';

describe('clients whose connections break at random bytes and lead to any instance', () => {
  testRandomCuts({
    name: '[R7.13b] [R7.15b] [F25] [P4] [P5] get every event once and in order, as the log has them',
    async start(random) {
      const cluster = await startFastCluster(withCounting(...randomCutLimits));
      cluster.balancer.choose(() => random.integer(0, 2));
      const { balancer, url, stop, instances } = cluster;
      return { cluster, port: balancer.port, url, stop, logs: () => instances.flatMap((gateway) => gateway.logs()) };
    },
    resumes: 300,
    sessions: { withCalls: 3, withGet: 3 },
    async check({ cluster }, transcripts) {
      const logs = await readLogs(cluster.redis);
      expect(logs.size).toBe(transcripts.length);
      expect(violationsOf({ transcripts, logs })).toEqual([]);
      expect(failuresOf(cluster)).toEqual([]);
      expect(new Set(cluster.balancer.requests.items.map(({ backend }) => backend))).toEqual(new Set([0, 1, 2]));
    },
  });
});
