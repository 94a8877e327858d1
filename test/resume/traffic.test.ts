import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { violationsOf } from '../support/log-checker.ts';
import { startRoundRobin } from '../support/round-robin.ts';
import { countOutcomes, executionsIn, startTraffic, trafficServer } from '../support/traffic.ts';
import { waitFor } from '../support/wait-for.ts';
import { createRandom, seedOfRun } from './random.ts';

async function startOne() {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-traffic-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const notes = join(folder, 'notes');
  const args = ['--timeouts.drain', '0', '--sse.streamAfter', '20ms', '--replay.maxSize', '800MiB'];
  const gateway = await startGateway({ command: trafficServer(notes), args });
  const balancer = await startRoundRobin({ backends: [gateway.baseUrl] });
  onTestFinished(balancer.close);
  return { gateway, notes, balancer, url: `${balancer.baseUrl}/mcp` };
}

test('[P3] [P4] mixed traffic through a balancer is answered as it should be, every call once', async () => {
  const { notes, balancer, url } = await startOne();
  const seed = seedOfRun();
  const mix = { count: 4, wait: 1, quick: 1, tell: 1, list: 1 };
  const traffic = await startTraffic(url, { random: createRandom(seed), callsPerSession: 30, dropChance: 0.7, mix });
  await traffic.done;
  const { transcripts } = traffic;
  const executions = await executionsIn(notes);
  expect(violationsOf({ transcripts, executions }), `RESUME_SEED=${seed}`).toEqual([]);
  const { answered = 0, broken = 0, ...others } = countOutcomes(transcripts);
  expect(others).toEqual({});
  expect(answered + broken).toBe(120);
  expect(answered).toBeGreaterThan(90);
  const connections = transcripts.flatMap((transcript) => transcript.connections);
  expect(connections.filter(({ after }) => after !== undefined).length).toBeGreaterThan(10);
  expect(new Set(connections.flatMap(({ events }) => events.map(({ data }) => /told/.test(data ?? '')))).size).toBe(2);
  expect(new Set(executions).size).toBe(executions.length);
  await traffic.endSessions();
  expect(balancer.requests.items.filter(({ method }) => method === 'DELETE')).toHaveLength(4);
});

test('a call whose gateway is lost is found: it was accepted, and has no answer', async () => {
  const { gateway, url } = await startOne();
  const traffic = await startTraffic(url, {
    random: createRandom(1),
    sessions: 1,
    callsAtOnce: 1,
    mix: { hold: 1 },
    dropChance: 0,
    callDeadlineMs: 1_000,
  });
  const answersOfHeld = () => traffic.transcripts[0]?.connections.filter(({ call }) => call === 's0-c0') ?? [];
  await waitFor(() => answersOfHeld().some(({ events }) => events[0]?.id !== undefined));
  await gateway.stop('SIGKILL');
  const transcripts = await traffic.stop();
  expect(transcripts[0]?.calls.map(({ id }) => id)).toEqual(['s0-c0']);
  expect(countOutcomes(transcripts)).toEqual({ none: 1 });
  expect(violationsOf({ transcripts }).map(({ kind }) => kind)).toContain('no_answer');
});
