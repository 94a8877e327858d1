import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createRandom, seedOfRun } from '../../resume/random.ts';
import { type ClientKind, newestClients, sseClients, webSocketClients } from '../../support/client-kinds.ts';
import { environmentNumber } from '../../support/environment-number.ts';
import { everythingFixture, type Gateway, type GatewayOptions, startGateway } from '../../support/gateway.ts';
import { createJournal } from '../../support/journal.ts';
import { violationsOf } from '../../support/log-checker.ts';
import { isAtLeast } from '../../support/log-levels.ts';
import { connectOld } from '../../support/old-client.ts';
import type { SdkClient } from '../../support/sdk-clients.ts';
import { countOutcomes, executionsIn, startTraffic, type Traffic, trafficServer } from '../../support/traffic.ts';
import { waitFor, withDeadline } from '../../support/wait-for.ts';
import { readFileLogs } from './file-logs.ts';
import { checkHostedClients } from './hosted-restart.ts';
import { startPatientProxy } from './patient-proxy.ts';

/** How often the gateway is killed under traffic (`KILL_RUNS=200`), and how many sessions there are. */
const kills = environmentNumber('KILL_RUNS', 3);
const sessions = environmentNumber('STORE_SESSIONS', 8);
/** How the gateway ends. A drain takes 20 s more for each test, so only long runs have it. */
const signals = (['SIGKILL', 'SIGTERM'] as const).slice(0, sessions > 8 ? 2 : 1);

/** A gateway with its store in a directory, which can be killed and started again on its port. */
async function startKeptGateway(command: readonly string[], env: GatewayOptions['env'] = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-restart-'));
  const directory = join(folder, 'store');
  const limits = ['--max-sessions', '500', '--sse.reconnectDelay', '50ms'];
  const args = ['--replay.store', `file:${directory}`, '--timeouts.grace', '500ms', ...limits];
  let gateway: Gateway = await startGateway({ command, args, env, isStoppedWithTest: false });
  const { port } = gateway;
  const proxy = await startPatientProxy(() => port);
  onTestFinished(async () => {
    await gateway.stop();
    await proxy.close();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder,
    directory,
    /** The URL of the endpoint behind the proxy. */
    url: `http://127.0.0.1:${proxy.port}/mcp`,
    /** Resolves with the time that the gateway took to start. */
    async restart(signal: NodeJS.Signals): Promise<number> {
      await gateway.stop(signal);
      const startedAt = performance.now();
      gateway = await startGateway({ command, args, env, port, isStoppedWithTest: false, readyDeadlineMs: 60_000 });
      return performance.now() - startedAt;
    },
    logs: () => gateway.logs(),
    stop: () => gateway.stop(),
  };
}

const callsOf = ({ transcripts }: Traffic): number =>
  transcripts.reduce((sum, { calls }) => sum + calls.filter(({ endedAt }) => endedAt !== undefined).length, 0);

async function moreCalls(traffic: Traffic, count: number): Promise<void> {
  const enough = callsOf(traffic) + count;
  await waitFor(() => callsOf(traffic) >= enough, { what: `${count} more calls`, deadlineMs: 60_000 });
}

test(
  `[P3] [P4] [P5] loses, repeats and reorders nothing in ${kills} kills of the only instance under traffic`,
  async () => {
    const notesFolder = await mkdtemp(join(tmpdir(), 'gangway-notes-'));
    onTestFinished(() => rm(notesFolder, { recursive: true, force: true }));
    const notes = join(notesFolder, 'notes');
    await writeFile(notes, '');
    const kept = await startKeptGateway(trafficServer(notes));
    const seed = seedOfRun();
    const random = createRandom(seed);
    const options = { random: random.fork(), sessions: Math.min(sessions, 20), callsAtOnce: 2, callDeadlineMs: 30_000 };
    const traffic = await startTraffic(kept.url, options);
    const startMs: number[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      await moreCalls(traffic, random.integer(sessions, 3 * sessions));
      startMs.push(await kept.restart('SIGKILL'));
    }
    await moreCalls(traffic, sessions);
    const transcripts = await traffic.stop();
    await kept.stop();
    const evidence = { transcripts, logs: await readFileLogs(kept.directory), executions: await executionsIn(notes) };
    expect(violationsOf(evidence).slice(0, 10), `RESUME_SEED=${seed}`).toEqual([]);
    const outcomes = countOutcomes(transcripts);
    process.stdout.write(
      `file-restart, RESUME_SEED=${seed}: ${JSON.stringify({ kills, outcomes, longestStartMs: Math.round(Math.max(...startMs)) })}\n`,
    );
    const bad = ['none', 'store_unavailable', 'unknown_session', 'internal', 'duplicate_id'];
    expect(Object.keys(outcomes).filter((outcome) => bad.includes(outcome))).toEqual([]);
    const statuses = new Set(transcripts.flatMap(({ connections }) => connections.map(({ status }) => status)));
    expect([...statuses]).not.toContain(404);
  },
  60_000 + kills * 10_000,
);

test(
  `[P3] ${sessions} hosted clients go on by themselves after kills of the only instance, and no call runs twice`,
  async () => {
    const journal = await createJournal();
    onTestFinished(() => journal.remove());
    const kept = await startKeptGateway(journal.command, { GANGWAY_SHARE: undefined });
    const restart = (): Promise<number> => kept.restart('SIGKILL');
    const read = async (state: 'started' | 'done'): Promise<readonly string[]> => journal[state]();
    const options = { url: kept.url, journal: read, clients: sessions, kills: Math.min(kills, 10), restart };
    const { answered, broken } = await checkHostedClients(options);
    process.stdout.write(`hosted clients: ${answered.length} answered, ${broken.length} broken\n`);
  },
  120_000 + sessions * 4_000,
);

/** A client, what it did before the restart, and how it goes on. */
interface Guest {
  readonly kind: ClientKind;
  client: SdkClient;
  readonly sessionId: string | undefined;
  /** A call that runs while the gateway is killed: its text, or its error. */
  readonly running: Promise<string>;
}

async function arrive(kind: ClientKind, url: string): Promise<Guest> {
  const client = await kind.connect(url);
  expect(await client.callTool('echo', { text: 'before' })).toBe('before');
  const running = client
    .callTool('progress', { count: 40, gapMs: 25, marker: 'm' }, { onProgress: () => undefined })
    .then(
      (text) => text,
      (error: Error) => `error: ${error.message}`,
    );
  return { kind, client, sessionId: client.sessionId, running };
}

/** Calls until the client has an answer: its own requests can meet the end of the old process. */
async function callAgain(guest: Guest, url: string): Promise<'went on' | 'connected anew'> {
  const deadline = performance.now() + 30_000;
  for (;;) {
    try {
      const answer = withDeadline(guest.client.callTool('echo', { text: 'after' }), { deadlineMs: 5_000 });
      expect(await answer).toBe('after');
      break;
    } catch (cause) {
      if (performance.now() > deadline) throw cause;
      if (guest.kind.speech.over === 'http') {
        await delay(50);
        continue;
      }
      // The session of a WebSocket, and that of a client of HTTP+SSE, ends with its connection (docs/decisions/0195).
      await guest.client.close().catch(() => undefined);
      guest.client = await guest.kind.connect(url);
      expect(await guest.client.callTool('echo', { text: 'after' })).toBe('after');
      return 'connected anew';
    }
  }
  expect(guest.client.sessionId).toBe(guest.sessionId);
  // Its EventSource has come back, to a new session. Nobody tells it that its running call is lost.
  if (guest.kind.speech.over === 'sse') await guest.client.close();
  return guest.kind.speech.over === 'http' ? 'went on' : 'connected anew';
}

test.each(signals)(
  `the sessions of ${sessions} SDK clients go on after %s and a restart, and clients of HTTP+SSE and WebSocket connect again`,
  async (signal) => {
    const kept = await startKeptGateway(everythingFixture);
    const kinds = [...newestClients, ...newestClients, ...sseClients, ...webSocketClients.slice(1)];
    const guests: Guest[] = [];
    while (guests.length < sessions) {
      const next = kinds.slice(0, Math.min(kinds.length, sessions - guests.length));
      guests.push(...(await Promise.all(next.map((kind) => arrive(kind, kept.url)))));
    }
    onTestFinished(async () => {
      await Promise.allSettled(guests.map(({ client }) => client.close()));
    });
    const restarted = kept.restart(signal);
    await restarted;
    const outcomes = await Promise.all(guests.map((guest) => callAgain(guest, kept.url)));
    for (const [index, { kind }] of guests.entries())
      expect([kind.name, outcomes[index]]).toEqual([
        kind.name,
        kind.speech.over === 'http' ? 'went on' : 'connected anew',
      ]);
    const ends = await Promise.all(
      guests.map(({ kind, running }) =>
        withDeadline(running, { deadlineMs: 30_000, what: `the call of ${kind.name}` }),
      ),
    );
    const counts: Record<string, number> = {};
    for (const [index, end] of ends.entries()) {
      const name = `${guests[index]?.kind.speech.over} ${end.slice(0, 60)}`;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    process.stdout.write(`${signal}: ${JSON.stringify(counts)}\n`);
    const faults = kept.logs().filter((line) => isAtLeast(line, 'error'));
    expect(faults).toEqual([]);
  },
  120_000 + sessions * 2_000,
);

test.each(signals)(
  'an HTTP+SSE client that comes back after %s and a restart goes on in a new session, without initialize',
  async (signal) => {
    const kept = await startKeptGateway(everythingFixture);
    const client = await connectOld(new URL(kept.url).origin);
    await client.request('tools/call', { name: 'echo', arguments: { text: 'before' } }, { id: 'before' });
    await kept.restart(signal);
    await client.stream.ended;
    await client.connect();
    const answer = await client.request('tools/call', { name: 'echo', arguments: { text: 'after' } }, { id: 'after' });
    expect(answer.result).toMatchObject({ content: [{ type: 'text', text: 'after' }] });
    expect(client.heard.items.filter(({ id }) => id === 'before')).toHaveLength(1);
    client.drop();
  },
);
