import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { report, watch } from '../fault/memory.ts';
import { openReader } from '../fault/reader.ts';
import { type CountingSession, openCounting, withCounting } from '../resume/counting.ts';
import type { Cluster } from '../support/cluster.ts';
import { type Gateway, root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { call, failuresOf, instancesOf, startFastCluster } from './fast.ts';

const mebibyte = 1024 * 1024;

/** A session of instance 0 by way of two others. */
async function openThere(cluster: Cluster): Promise<readonly [CountingSession, CountingSession, CountingSession]> {
  const [own, one, two] = instancesOf(cluster);
  const session = await openCounting(own);
  return [session, session.at(one), session.at(two)];
}

test('[P1] [P8] large messages pass both ways by way of an instance that is not the owner', async () => {
  const cluster = await startFastCluster(withCounting('--sse.streamAfter', '20s'));
  const [, one, two] = await openThere(cluster);
  // As large as a body may be.
  const frame = { jsonrpc: '2.0', method: 'test/none', params: { text: '' } };
  const room = 4 * mebibyte - Buffer.byteLength(JSON.stringify(frame));
  const text = JSON.stringify({ ...frame, params: { text: `${'ä'.repeat(10)}${'x'.repeat(room - 20)}` } });
  const accepted = await (await one.send(text)).answer();
  expect([accepted.status, accepted.text]).toEqual([202, '']);
  expect((await two.lines()).includes(text)).toBe(true);

  // Each is in many parts, between which there is room for all else.
  const bytes = 8 * mebibyte;
  const answers = await Promise.all([one, two].map((session) => session.request('test/large', { bytes })));
  for (const { status, headers, json } of answers) {
    expect(json, JSON.stringify(json)?.slice(0, 300)).toHaveProperty('result');
    expect([status, headers['content-type'], json.result.text.length]).toEqual([200, 'application/json', bytes]);
  }
  expect(failuresOf(cluster)).toEqual([]);
});

/** How much a process has written so far. */
const writtenBy = (pid: number): number => Number(/wchar: (\d+)/.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);

test.skipIf(process.platform !== 'linux')(
  '[P8] [F20] a slow reader on another instance is cut; until then the child is paused, and memory is flat at both',
  async () => {
    const floodBytes = 48 * mebibyte;
    const cluster = await startFastCluster({
      instances: 2,
      command: [process.execPath, `${root}test/fixtures/children/flooding-server.mjs`],
      args: ['--timeouts.drain', '0', '--sse.streamAfter', '0', '--timeouts.slowReader', '1s'],
    });
    const [own, other] = cluster.instances as readonly [Gateway, Gateway];
    const session = await initialize(own.url);
    const { pid } = (await session.request('x')).messages[0].result;
    const work = async (): Promise<void> => {
      const written = writtenBy(pid);
      const reader = await openReader(other.url, session, 'never reads', call('f', 'flood', { bytes: floodBytes }));
      let last = written;
      const paused = async (): Promise<number | false> => {
        const before = last;
        last = writtenBy(pid);
        return last > written && last === before && last;
      };
      const pausedAt = await waitFor(paused, { what: 'the child to be paused', intervalMs: 400 });
      expect(pausedAt).toBeLessThan(written + floodBytes / 4);
      // Cut, the reader holds up nothing any more: what is not kept is evicted.
      await waitFor(() => writtenBy(pid) >= written + floodBytes, { what: 'the end of the flood', deadlineMs: 40_000 });
      expect((await session.at(other.url).request('x')).status).toBe(200);
      reader.end();
    };
    const working = work();
    const seen = await Promise.all([own, other].map((gateway) => watch(gateway, working)));
    report('F20 by way of another instance, at the owner and there', seen);
    for (const { grownMiB } of seen) expect(grownMiB).toBeLessThan(150);
    expect(failuresOf(cluster)).toEqual([]);
  },
);
