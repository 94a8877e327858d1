import { onTestFinished, test } from 'vitest';
import { busyRestartMs, restartUnderBusySessions } from '../integration/busy-restart.ts';
import { argumentsFor, startRemoteServer } from '../integration/remote-server.ts';
import { startFastCluster } from './fast.ts';

const title = 'a server on %s restarted under 50 busy sessions of a cluster: all go on, calls in flight are answered';

test.each(['sse', 'http'])(
  `[R8.04] [F28] [P3] ${title}`,
  async (kind) => {
    const server = await startRemoteServer(kind);
    onTestFinished(() => server.stop());
    const { url, instances } = await startFastCluster({ args: argumentsFor(server.url) });
    await restartUnderBusySessions(server, { url, logs: () => instances.flatMap((gateway) => gateway.logs()) });
  },
  busyRestartMs,
);
