import { onTestFinished, test } from 'vitest';
import { busyRestartMs, restartUnderBusySessions } from '../integration/busy-restart.ts';
import { argumentsFor, startRemoteServer } from '../integration/remote-server.ts';
import { startCluster } from '../support/cluster.ts';

test(
  '[R8.04] [F28] [P3] an SSE server restarted under 16 busy sessions of a cluster: all go on, calls in flight are answered',
  async () => {
    const server = await startRemoteServer('sse');
    onTestFinished(() => server.stop());
    // No instance is lost here. With short leases, a busy machine would move sessions to other instances.
    const args = ['--cluster.lease', '60s', ...argumentsFor(server.url)];
    const { url, instances } = await startCluster({ args });
    await restartUnderBusySessions(server, {
      url,
      sessionCount: 16,
      logs: () => instances.flatMap((gateway) => gateway.logs()),
    });
  },
  busyRestartMs,
);
