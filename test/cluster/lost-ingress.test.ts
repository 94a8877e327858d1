import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { root } from '../support/gateway.ts';
import type { Answer } from '../support/http-client.ts';
import { modernAnswers, retryWith } from '../support/input-required.ts';
import { users, usersEnv } from '../support/keepers.ts';
import { callModern, metaKeys, openModern, postModern } from '../support/modern-client.ts';
import { waitFor, withDeadline } from '../support/wait-for.ts';
import { leaseMs, settle, startFastCluster, urlOf } from './fast.ts';

const meta = { [metaKeys.clientCapabilities]: { elicitation: {} } };
const alice = { meta, headers: users.alice };
const bob = { meta, headers: users.bob };
/** How long the owner waits for a reader, until it looks every 5 s, and for the call to end; with a reserve. */
const endedMs = leaseMs + 2_000 + 2 * 5_000 + 20_000;

const resultOf = ({ messages }: Answer) => messages.at(-1).result;

/** Users of one process, whose calls wait for each other: `--share all`. The session belongs to instance 0. */
describe('[P2] [P3] [P8] an instance that is killed', () => {
  let folder: string;
  let cluster: Cluster;
  const notes = () => readFile(join(folder, 'notes'), 'utf8');
  const noted = (what: string) => waitFor(async () => (await notes()).includes(what), { what, deadlineMs: endedMs });
  const listTools = () => postModern(urlOf(cluster, 0), 'tools/list', {}, alice);

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-asking-'));
    const file = join(folder, 'notes');
    await writeFile(file, '');
    cluster = await startFastCluster({
      instances: 2,
      env: usersEnv,
      command: [process.execPath, `${root}test/cluster/asking-server.mjs`, file],
      args: ['--share', 'all', '--era', 'legacy', '--timeouts.grace', '200ms'],
    });
    await settle(cluster, users.alice);
    await listTools();
  });
  afterEach(async () => {
    await cluster.stop();
    await rm(folder, { recursive: true });
  });

  test.each(['before', 'after'])(
    '%s the server has asked the client of a call that it carries: the call ends, and those of others go on',
    async (when) => {
      await openModern(urlOf(cluster, 1), 'tools/call', { name: 'ask', arguments: {} }, alice);
      await noted('call ask');
      if (when === 'before') await cluster.kill(1);
      else await cluster.freeze(1);
      await listTools(); // which makes the server ask
      if (when.startsWith('after')) await cluster.kill(1);
      const waits = callModern(urlOf(cluster, 0), 'quick', {}, bob);
      const answer = await withDeadline(waits, { deadlineMs: endedMs, what: 'the call of the other user' });
      expect(resultOf(answer).content[0].text).toBe('quick');
      expect(await notes()).toContain('cancelled');
    },
    60_000,
  );

  test('after the client has got the question: the call waits for its answer, at any instance', async () => {
    const asking = callModern(urlOf(cluster, 1), 'ask', {}, alice);
    await noted('call ask');
    await listTools();
    const asked = await asking;
    expect(resultOf(asked).resultType).toBe('input_required');
    await cluster.kill(1);
    await delay(leaseMs + 2_000 + 2 * 5_000 + 1_000); // by when a call without a reader has ended
    expect(await notes()).not.toContain('cancelled');
    const params = retryWith({ ...asked, json: asked.messages.at(-1) }, modernAnswers);
    const answer = await callModern(urlOf(cluster, 0), 'ask', {}, { ...alice, params });
    expect(resultOf(answer).content[0].text).toContain('accept');
  }, 60_000);
});
