import { describe, expect, onTestFinished, test } from 'vitest';
import { everythingFixture, type Gateway, type GatewayOptions, root, startGateway } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';
import { findStarter, type ProcessInfo, stillAlive, waitForDescendants, waitUntilGone } from '../support/processes.ts';
import { waitFor } from '../support/wait-for.ts';

/** What is left of servers when the gateway, its starter or both are killed and can run no code (P10, fault 19). */
const sessionCount = 20;

const server = (mode: 'deaf' | 'stubborn' | 'forks' | 'leaves'): string[] => [
  '/bin/sh',
  `${root}test/fixtures/children/stubborn-server.sh`,
  mode,
];

/** So that the tests' own ends in order are fast, of servers that do not obey. */
const start = (options: GatewayOptions): Promise<Gateway> =>
  startGateway({ args: ['--timeouts.grace', '100ms'], ...options });

const openSessions = (gateway: Gateway, count: number): Promise<Session[]> =>
  Promise.all(Array.from({ length: count }, () => initialize(gateway.url)));

/** The processes of the gateway's servers, which end with the test. */
async function processesOf(gateway: Gateway, count: number): Promise<ProcessInfo[]> {
  const found = await waitForDescendants(gateway.pid, count);
  onTestFinished(async () => {
    for (const { pid } of await stillAlive(found)) process.kill(pid, 'SIGKILL');
  });
  return found;
}

async function starterOf(gateway: Gateway, isNew: (pid: number) => boolean = () => true): Promise<ProcessInfo> {
  return waitFor(async () => {
    const found = await findStarter(gateway.pid);
    return found !== undefined && isNew(found.pid) ? found : undefined;
  });
}

async function kill(gateway: Gateway): Promise<void> {
  process.kill(gateway.pid, 'SIGKILL');
  await gateway.exited;
}

describe('after kill -9 of the gateway', () => {
  test.each([
    ['ignores the end of its input', 'deaf', 1],
    ['ignores SIGTERM', 'stubborn', 1],
    ['ignores SIGTERM, with what it forked', 'forks', 2],
    ['ends, but leaves a process in its group', 'leaves', 2],
  ] as const)('[R6.14b] [P10] fault 19: nothing is left of a server that %s', async (_, mode, each) => {
    const gateway = await start({ command: server(mode) });
    await openSessions(gateway, sessionCount);
    const left = [...(await processesOf(gateway, each * sessionCount)), await starterOf(gateway)];
    await kill(gateway);
    await waitUntilGone(left);
  });

  test('[P10] nothing is left of servers that start just then', async () => {
    const gateway = await start({ command: server('stubborn') });
    const opening = Promise.allSettled([openSessions(gateway, sessionCount)]);
    const starter = await starterOf(gateway);
    const some = await waitForDescendants(gateway.pid, (count) => count >= 3);
    process.kill(gateway.pid, 'SIGSTOP'); // no more starts, so that all processes can be listed
    const all = await waitForDescendants(gateway.pid, (count) => count >= some.length);
    process.kill(gateway.pid, 'SIGKILL');
    await gateway.exited;
    await opening;
    await waitUntilGone([...all, starter]);
  });
});

describe('after kill -9 of the starter', () => {
  test('[P10] running servers go on, the end of one is noticed, and new ones start', async () => {
    const gateway = await start({ command: everythingFixture, args: [] });
    const [session] = await openSessions(gateway, 2);
    const [one] = await processesOf(gateway, 2);
    const first = await starterOf(gateway);
    process.kill(first.pid, 'SIGKILL');
    const lost = 'the process that starts the servers';
    await waitFor(() => gateway.logs().some(({ level, msg }) => level === 'warn' && String(msg).startsWith(lost)));
    expect((await session?.request('tools/list'))?.status).toBe(200);
    process.kill(one?.pid ?? 0, 'SIGKILL');
    await waitFor(() => gateway.logs().some(({ detail }) => String(detail).includes('Its exit code is not known')));
    await openSessions(gateway, 1);
  });

  test('[P10] and then of the gateway: nothing is left of a server that ignores SIGTERM', async () => {
    const gateway = await start({ command: server('forks') });
    await openSessions(gateway, 5);
    const left = await processesOf(gateway, 10);
    const first = await starterOf(gateway);
    process.kill(first.pid, 'SIGKILL');
    const next = await starterOf(gateway, (pid) => pid !== first.pid);
    await kill(gateway);
    await waitUntilGone([...left, next]);
  });

  test('[P10] and of the gateway at once: a server that reads its input ends', async () => {
    const gateway = await start({ command: everythingFixture });
    await openSessions(gateway, 5);
    const left = await processesOf(gateway, 5);
    const { pid } = await starterOf(gateway);
    for (const each of [pid, gateway.pid]) process.kill(each, 'SIGKILL');
    await gateway.exited;
    await waitUntilGone(left);
  });
});
