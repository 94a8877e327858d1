import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect } from 'vitest';
import { withCounting } from '../resume/counting.ts';
import { randomCutLimits, testRandomCuts } from '../resume/random-cuts.ts';
import { violationsOf } from '../support/log-checker.ts';
import { readLogs } from '../support/session-logs.ts';
import { executionsIn } from '../support/traffic.ts';
import { failuresOf, startFastCluster } from './fast.ts';

describe('clients whose connections break at random bytes and lead to any instance', () => {
  testRandomCuts({
    name: '[R7.13b] [R7.15b] [F25] [P4] [P5] get every event once and in order, as the log has them',
    async start(random) {
      const { command = [], ...options } = withCounting(...randomCutLimits);
      const folder = await mkdtemp(join(tmpdir(), 'gangway-cuts-'));
      const notes = join(folder, 'notes');
      await writeFile(notes, '');
      const remove = () => rm(folder, { recursive: true });
      const cluster = await startFastCluster({ ...options, command: [...command, notes] }).catch(async (cause) => {
        await remove();
        throw cause;
      });
      cluster.balancer.choose(() => random.integer(0, 2));
      const { balancer, url, instances } = cluster;
      const stop = async (): Promise<void> => {
        await cluster.stop().finally(remove);
      };
      return {
        cluster,
        notes,
        port: balancer.port,
        url,
        stop,
        logs: () => instances.flatMap((gateway) => gateway.logs()),
      };
    },
    resumes: 150,
    sessions: { withCalls: 3, withGet: 3 },
    async check({ cluster, notes }, transcripts) {
      const logs = await readLogs(cluster.redis);
      expect(logs.size).toBe(transcripts.length);
      const executions = await executionsIn(notes);
      expect(executions.length).toBeGreaterThan(0);
      expect(violationsOf({ transcripts, logs, executions })).toEqual([]);
      await writeFile(notes, '');
      expect(failuresOf(cluster)).toEqual([]);
      expect(new Set(cluster.balancer.requests.items.map(({ backend }) => backend))).toEqual(new Set([0, 1, 2]));
    },
  });
});
