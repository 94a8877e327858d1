import { onTestFinished, test } from 'vitest';
import { expectChain, exportingTo, sidesOf, startCollector, traceparent } from '../support/collector.ts';
import { root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { instancesOf, settle, startFastCluster } from './fast.ts';

const repeats = [process.execPath, `${root}test/fixtures/children/repeats-requests.mjs`];

test('a trace goes on from the instance that has the client to the one that has the server', async () => {
  const collector = await startCollector();
  onTestFinished(collector.close);
  const cluster = await startFastCluster({ instances: 2, command: repeats, env: exportingTo(collector) });
  await settle(cluster);
  const [owner = '', ingress = ''] = instancesOf(cluster);
  const session = await initialize(owner, { headers: { Traceparent: traceparent } });
  const { messages } = await session.at(ingress).request('far/away');
  await cluster.kill(1, 'SIGTERM');
  const { outer } = sidesOf(collector, 'far/away'); // of the ingress, which has ended and flushed
  await session.delete();
  await cluster.kill(0, 'SIGTERM');
  expectChain(
    { ...sidesOf(collector, 'far/away'), outer },
    JSON.parse(messages[0].result.text).params._meta.traceparent,
  );
});
