import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  ownIdentity,
  type ProcessIdentity,
  type ProcessState,
  readProcess,
} from '../../src/backend/stdio/processes/process-identity.ts';
import { formatJournal, journalFileName } from '../../src/backend/stdio/stale-groups/journal-format.ts';
import { type Gateway, type GatewayOptions, root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { type ProcessInfo, stillAlive, waitForDescendants, waitUntilGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * What a gateway leaves behind that was killed and could run no code (P10, fault 19). Each test has its own directory of
 * notes, so that it sees nothing of the gateways of others.
 */
const sessionCount = 20;

/** A PATH without `setpriv`; it has Node.js, which may be what starts the gateway. */
function withoutSetpriv({ runtime }: Place): { readonly PATH: string } {
  const bin = join(runtime, 'bin');
  mkdirSync(bin);
  symlinkSync(process.execPath, join(bin, 'node'));
  return { PATH: bin };
}

const server = (mode: 'deaf' | 'stubborn' | 'forks' | 'leaves'): string[] => [
  '/bin/sh',
  `${root}test/fixtures/children/stubborn-server.sh`,
  mode,
];

/** The place of `XDG_RUNTIME_DIR`, and the directory in it where gateways keep their notes. */
function makePlace(): { readonly runtime: string; readonly notes: string } {
  const runtime = mkdtempSync(join(tmpdir(), 'gangway-orphans-'));
  onTestFinished(() => rmSync(runtime, { recursive: true, force: true }));
  return { runtime, notes: join(runtime, `mcp-gangway-${process.geteuid?.()}`) };
}

type Place = ReturnType<typeof makePlace>;

/** So that the tests' own ends in order are fast, of servers that do not obey. */
const shortGrace = ['--timeouts.grace', '100ms'];

const start = ({ runtime }: Place, { env = {}, args = [], ...options }: GatewayOptions): Promise<Gateway> =>
  startGateway({ ...options, args: [...shortGrace, ...args], env: { ...env, XDG_RUNTIME_DIR: runtime } });

/** Opens sessions, and resolves with the processes of their servers, which end with the test. */
async function openSessions(gateway: Gateway, count: number, processesEach = 1): Promise<ProcessInfo[]> {
  await Promise.all(Array.from({ length: count }, () => initialize(gateway.url)));
  const children = await waitForDescendants(gateway.pid, count * processesEach);
  onTestFinished(async () => {
    for (const { pid } of await stillAlive(children)) process.kill(pid, 'SIGKILL');
  });
  return children;
}

async function kill(gateway: Gateway): Promise<void> {
  process.kill(gateway.pid, 'SIGKILL');
  await gateway.exited;
}

const cleanUps = (gateway: Gateway) => gateway.logs().filter(({ msg }) => String(msg).startsWith('cleaned up'));

/** The line about gateways whose processes are all gone, so that nothing was cleaned up. */
const nothingLeft = (gateway: Gateway) =>
  gateway.logs().filter(({ msg }) => String(msg).startsWith('a gateway was killed'));

const warnings = (gateway: Gateway) => gateway.logs().filter(({ level }) => level === 'warn');

/** A process of the test's own that leads a group and a session, as the servers of a gateway do. */
async function startInnocent(): Promise<ProcessState> {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  return readProcess(child.pid as number) as ProcessState;
}

const isLinux = process.platform === 'linux';
const isRoot = process.geteuid?.() === 0;

describe.runIf(isLinux)('after kill -9 of the gateway, by the kernel', () => {
  test('[P10] with setpriv SIGTERM ends at once what ignores the end of its input', async () => {
    const gateway = await start(makePlace(), { command: server('deaf') });
    const children = await openSessions(gateway, sessionCount);
    await kill(gateway);
    await waitUntilGone(children);
  });
});

describe.runIf(isLinux)('after kill -9 of the gateway, the next start', () => {
  test('[R6.14b] [P10] fault 19: ends what ignores SIGTERM, with and without setpriv and with what it forked, and nothing of a gateway that lives', async () => {
    const place = makePlace();
    const without = await start(place, { command: server('forks'), env: withoutSetpriv(place) });
    const [withIt, living] = await Promise.all([
      start(place, { command: server('stubborn') }),
      start(place, { command: server('deaf') }),
    ]);
    const left = [await openSessions(without, sessionCount, 2), await openSessions(withIt, sessionCount)].flat();
    const alive = await openSessions(living, 2);
    await Promise.all([kill(without), kill(withIt)]);
    expect(await stillAlive(left)).toHaveLength(3 * sessionCount);

    const next = await start(place, { command: server('deaf') });
    expect(await stillAlive(left)).toEqual([]);
    expect(cleanUps(next)).toMatchObject([{ level: 'info', gateways: 2, ended: [], survived: [], unknown: [] }]);
    expect(cleanUps(next)[0]?.['killed']).toHaveLength(2 * sessionCount);
    expect(await stillAlive(alive)).toHaveLength(2);
    const holders = readdirSync(place.notes).map((name) => Number(name.split('-', 1)[0]));
    expect(holders.sort()).toEqual([living.pid, next.pid].sort());

    await next.stop();
    await living.stop();
    expect(readdirSync(place.notes)).toEqual([]);
  });

  test('[P10] fault 19: ends what a server left that is itself gone, also if a start before it was killed at that', async () => {
    const place = makePlace();
    const gateway = await start(place, { command: server('leaves') });
    const [first, second] = [await openSessions(gateway, 1, 2), await openSessions(gateway, 1, 4)];
    const leaders = second.filter(({ ppid }) => ppid === gateway.pid);
    const grandchildren = first.filter(({ ppid }) => ppid !== gateway.pid); // started before the second leader surely
    await kill(gateway);
    await waitUntilGone(leaders);
    expect(await stillAlive(grandchildren)).toHaveLength(1);

    const interrupted = expect(start(place, { command: server('deaf') })).rejects.toThrow('SIGKILL');
    const taken = await waitFor(() => readdirSync(place.notes).find((name) => name.includes(`.of-${gateway.pid}-`)));
    process.kill(Number(taken.split('-', 1)[0]), 'SIGKILL');
    await interrupted;
    expect(await stillAlive(grandchildren)).toHaveLength(1);

    const next = await start(place, { command: server('deaf') });
    expect(await stillAlive(grandchildren)).toEqual([]);
    expect(cleanUps(next)).toHaveLength(1);
  });

  test('[P10] two gateways that start at once share the work', async () => {
    const place = makePlace();
    const gateway = await start(place, { command: server('deaf'), env: withoutSetpriv(place) });
    const left = await openSessions(gateway, 5);
    await kill(gateway);
    const nexts = await Promise.all([1, 2, 3].map(() => start(place, { command: server('deaf') })));
    await waitUntilGone(left);
    const found = nexts.flatMap(cleanUps);
    expect(found).toMatchObject([{ gateways: 1 }]);
    expect(found[0]?.['ended']).toHaveLength(5);
    expect(nexts.flatMap(warnings)).toEqual([]);
  });

  test('[P10] leaves an innocent process alone that has a noted pid by now', async () => {
    const place = makePlace();
    mkdirSync(place.notes, { mode: 0o700 });
    const innocent = await startInnocent();
    const { pid, startTicks } = innocent;
    const groups = [{ pid, startTicks: startTicks - 1 }];
    writeNotes(place, 'dead', groups);
    const next = await start(place, { command: server('deaf') });
    expect(nothingLeft(next)).toMatchObject([{ gateways: 1, ended: [], killed: [], survived: [], unknown: [] }]);
    expect(cleanUps(next)).toEqual([]);
    expect(readProcess(pid)).toEqual(innocent);
  });

  test('[P10] touches no file of another container, and removes one of another boot without looking for its processes', async () => {
    const place = makePlace();
    mkdirSync(place.notes, { mode: 0o700 });
    const innocent = await startInnocent();
    const other = writeNotes(place, 'other container', [innocent], { pidNamespace: 'pid:[1]' });
    const earlier = writeNotes(place, 'earlier', [innocent], { bootId: 'deadbeef' });
    const next = await start(place, { command: server('deaf') });
    expect(readProcess(innocent.pid)).toEqual(innocent);
    expect(readdirSync(place.notes)).toContain(other);
    expect(readdirSync(place.notes)).not.toContain(earlier);
    expect([...cleanUps(next), ...warnings(next)]).toEqual([]);
  });

  test('[P10] ignores files that somebody or something else wrote, with a warning for each', async () => {
    const place = makePlace();
    mkdirSync(place.notes, { mode: 0o700 });
    const innocent = await startInnocent();
    const file = (number: number) => join(place.notes, journalFileName({ pid: 2 ** 30 + number, startTicks: 1 }));
    const good = formatJournal({ gateway: deadGateway(), aliveTicks: 1, groups: [innocent] });
    const elsewhere = join(place.runtime, 'elsewhere');
    writeFileSync(elsewhere, good, { mode: 0o600 });

    writeFileSync(file(1), `${good}kill everything\n`, { mode: 0o600 });
    writeFileSync(file(2), '', { mode: 0o600 });
    writeFileSync(file(3), good, { mode: 0o600 });
    truncateSync(file(3), 64 * 1024 * 1024);
    symlinkSync(elsewhere, file(4));
    mkdirSync(file(5));
    execFileSync('mkfifo', [file(6)]);
    writeFileSync(file(7), good);
    chmodSync(file(7), 0o666);
    const faults = [
      'unknown format',
      'unknown format',
      'more than \\d+ bytes',
      'symbolic link',
      'not a file',
      'not a file',
      'other users may write',
    ];
    if (isRoot) {
      writeFileSync(file(8), good, { mode: 0o600 });
      chownSync(file(8), 12_345, 12_345);
      faults.push('belongs to another user');
    }
    const before = readdirSync(place.notes).sort();

    const next = await start(place, { command: server('deaf') });
    const told = warnings(next).map(({ file }) => String(file));
    expect(told.sort()).toEqual(faults.map((fault) => expect.stringMatching(fault)));
    expect(told.map((text) => text.split(': ', 1)[0])).toEqual(faults.map((_, index) => file(index + 1)));
    expect(cleanUps(next)).toEqual([]);
    await next.stop();
    expect(readdirSync(place.notes).sort()).toEqual(before);
    expect(readProcess(innocent.pid)).toEqual(innocent);
  });

  test.each([
    ['cannot be made', ({ runtime }: Place) => chmodAway(runtime), 'cannot be created'],
    ['is a link', ({ runtime, notes }: Place) => symlinkSync(runtime, notes), 'not a directory'],
    ['is open to others', ({ notes }: Place) => openToAll(notes), 'open to other users'],
    ...(isRoot ? [['is of another user', ({ notes }: Place) => giveAway(notes), 'another user'] as const] : []),
  ] as const)('[P10] a directory that %s is a warning, and the gateway serves', async (_, prepare, why) => {
    const place = makePlace();
    prepare(place);
    const gateway = await start(place, { command: server('deaf') });
    await openSessions(gateway, 1);
    expect(warnings(gateway)).toMatchObject([{ why: expect.stringContaining(why) }]);
  });
});

/** A gateway that never was, in this boot and here. */
const deadGateway = () => ({ ...(ownIdentity() as NonNullable<ReturnType<typeof ownIdentity>>), pid: 2 ** 30 });

/** Writes a file as a gateway would have; returns its name. */
function writeNotes({ notes }: Place, holder: string, groups: readonly ProcessIdentity[], place = {}): string {
  const gateway = { ...deadGateway(), ...place, startTicks: holder.length };
  const name = journalFileName(gateway);
  writeFileSync(join(notes, name), formatJournal({ gateway, aliveTicks: 1, groups }), { mode: 0o600 });
  return name;
}

/** In the way of the directory is nothing, not even its parent: what holds for root too. */
const chmodAway = (runtime: string): void => rmSync(runtime, { recursive: true });

function openToAll(notes: string): void {
  mkdirSync(notes);
  chmodSync(notes, 0o777);
}

function giveAway(notes: string): void {
  mkdirSync(notes, { mode: 0o700 });
  chownSync(notes, 12_345, 12_345);
}
