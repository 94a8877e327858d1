import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { contentsOfRedis } from '../support/redis-contents.ts';
import { showsVariables, variableOf, variableOfModern } from '../support/shown-variables.ts';
import { waitFor } from '../support/wait-for.ts';
import { failuresOf, instancesOf, settle, startFastCluster, statusOf } from './fast.ts';

const tokenOf = (token: string) => ({ 'X-Github-Token': token });

let cluster: Cluster;
beforeAll(async () => {
  const credential = ['--defaults.credentials', 'GITHUB_TOKEN={header:X-GitHub-Token}', '--share', 'user'];
  cluster = await startFastCluster({ args: ['--log-level', 'trace', ...credential], command: showsVariables });
  await settle(cluster, tokenOf('nobody'));
});
afterAll(async () => {
  expect(failuresOf(cluster)).toEqual([]);
  await cluster.stop();
});

const show = (session: Session, url = '') => variableOf(session.at(url), 'GITHUB_TOKEN');

test('[P11] [P12] by way of any instance users have their own processes, and no credentials stay anywhere', async () => {
  const urls = instancesOf(cluster);
  const names = ['alice-canary', 'bob-canary'];
  const sessions = await Promise.all(names.map((name) => initialize(urls[0], { headers: tokenOf(name) })));
  const shown = await Promise.all(sessions.flatMap((session) => urls.map((url) => show(session, url))));
  expect(shown.map(({ value }) => value)).toEqual(names.flatMap((name) => [name, name, name]));
  expect(new Set(shown.map(({ pid }) => pid)).size).toBe(2);
  const modern = await Promise.all(
    names.flatMap((name) => urls.map((url) => variableOfModern(url, 'GITHUB_TOKEN', { headers: tokenOf(name) }))),
  );
  expect(modern.map(({ value }) => value)).toEqual(names.flatMap((name) => [name, name, name]));
  expect(new Set(modern.map(({ pid }) => pid)).size).toBe(2);
  // Who brings another token finds nothing, at any instance.
  for (const url of urls) {
    expect(await statusOf(url, sessions[0]?.id ?? '', 'POST', tokenOf('bob-canary'))).toBe(404);
  }
  // Letters between instances have them; each is deleted once it was acted on.
  await waitFor(async () => !(await contentsOfRedis(cluster.redis.url)).includes('canary'), {
    what: 'no credentials to be in Redis',
  });
  for (const gateway of cluster.instances) {
    expect(gateway.stdout() + gateway.stderr()).not.toContain('canary');
    for (const { pid } of await gateway.descendants()) {
      expect(await readFile(`/proc/${pid}/cmdline`, 'latin1')).not.toContain('canary');
    }
  }
  await Promise.all(sessions.map((session) => session.delete()));
});

test('[P3] a new owner starts the server with the credentials of the request that made it take over', async () => {
  const [first, second, third] = instancesOf(cluster);
  const session = await initialize(first, { headers: tokenOf('carol') });
  const before = await show(session, second);
  const isAt = (gateway: (typeof cluster.instances)[number]) =>
    gateway.descendants().then((all) => all.some(({ pid }) => pid === before.pid));
  const places = await Promise.all(cluster.instances.map(isAt));
  await cluster.kill(places.indexOf(true));
  expect(await statusOf(second, session.id, 'POST', tokenOf('mallory'))).toBe(404);
  expect((await session.at(second).request('resources/list')).messages.at(-1).result).toEqual({ resources: [] });
  const after = await show(session, third);
  expect(after.value).toBe('carol');
  expect(after.pid).not.toBe(before.pid);
  await session.at(third).delete();
});
