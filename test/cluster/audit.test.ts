import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAuditFile } from '../support/audit-lines.ts';
import { startCluster } from '../support/cluster.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, post } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { call, settle, shortLeases, urlOf } from './fast.ts';

test('a call leaves one line, wherever it came in: with its owner, with the next one, or where it was refused', async () => {
  const audit = createAuditFile();
  const cluster = await startCluster({
    instances: 2,
    args: [...shortLeases, ...audit.args],
    command: everythingFixture,
  });
  await settle(cluster);
  const refused = (await audit.words(2)).length;
  const session = await initialize(urlOf(cluster, 0));
  const other = session.at(urlOf(cluster, 1));
  await other.callTool('echo', { text: 'a' }); // answered as JSON, by letter
  await other.callTool('slow', { ms: 300 }); // answered on a stream, by letter
  await (await other.send(call('left', 'slow', { ms: 600 }))).drop();
  await post(urlOf(cluster, 1), call('lost', 'echo'), { 'Mcp-Session-Id': randomUUID() }); // of no session
  const words = await audit.words(refused + 5);
  expect(words.slice(refused).sort()).toEqual([
    'initialize ok',
    'tools/call echo fault unknown_session',
    'tools/call echo ok',
    'tools/call slow ok',
    'tools/call slow ok',
  ]);
  const pids = audit
    .lines()
    .slice(refused)
    .map(({ instance }) => String(instance).split(':').at(-1));
  const [owner, ingress] = cluster.instances.map(({ pid }) => String(pid));
  expect(pids.filter((pid) => pid === owner)).toHaveLength(4);
  expect(pids.filter((pid) => pid === ingress)).toHaveLength(1);

  // One is on a stream that the log has, of the other nothing was sent.
  const streamed = await other.send(call('streamed', 'progress', { count: 100, gapMs: 60_000 }));
  await streamed.nextMessage();
  const waiting = other.request(
    'tools/call',
    { name: 'slow', arguments: { ms: 60_000 } },
    {
      headers: { Accept: 'application/json' },
    },
  );
  await other.request('ping');
  await audit.words(refused + 6);
  await cluster.kill(0);
  await Promise.all([waiting, streamed.answer()]);
  const after = await audit.words(refused + 8);
  expect(after.slice(refused + 5).sort()).toEqual([
    'ping ok',
    'tools/call progress fault outcome_unknown',
    'tools/call slow fault outcome_unknown',
  ]);
  await cluster.stop();
  expect(audit.lines()).toHaveLength(refused + 8);
});

test('a line has the id of the HTTP request that brought the call, also from another instance', async () => {
  const audit = createAuditFile();
  const cluster = await startCluster({ instances: 2, args: audit.args, command: everythingFixture });
  const session = await initialize(urlOf(cluster, 0));
  for (const instance of [0, 1]) {
    const requestId = randomUUID();
    const at = session.at(urlOf(cluster, instance));
    await at.request('tools/list', undefined, { headers: { 'X-Request-Id': requestId } });
    const line = await waitFor(() => audit.lines().find((each) => each['requestId'] === requestId), {
      what: `the line of instance ${instance}`,
    });
    expect(line).toMatchObject({ method: 'tools/list', outcome: 'ok' });
  }
});
