import { expect, test } from 'vitest';
import { everythingFixture } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { waitForDescendants } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';
import { startFastCluster, urlOf } from './fast.ts';

test('[P3] [P10] a session that hibernates is woken by a request at any instance, and taken over when its owner is lost', async () => {
  const cluster = await startFastCluster({
    args: ['--defaults.hibernateAfter', '300ms'],
    command: [...everythingFixture],
  });
  const owner = cluster.instances[0];
  const session = await initialize(urlOf(cluster, 0));
  const elsewhere = session.at(urlOf(cluster, 1));
  const sleeps = (count: number) =>
    waitFor(() => owner?.logs().filter(({ msg }) => msg === 'session hibernated').length === count, {
      what: `sleep ${count}`,
    });
  await sleeps(1);
  await waitForDescendants(owner?.pid as number, 0);
  expect((await elsewhere.request('tools/list')).messages).toMatchObject([{ result: { tools: expect.anything() } }]);
  await sleeps(2);
  await cluster.kill(0, 'SIGKILL');
  expect((await elsewhere.request('tools/list')).messages).toMatchObject([{ result: { tools: expect.anything() } }]);
});
