import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { initialize, type Session } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import type { RemoteServer } from './remote-server.ts';

/** So long a client looks at an answer: without it the machine would be the bound, and not the server's absence. */
const thinkMs = 100;

/** What is waited for takes a few seconds on an idle machine. */
const deadlineMs = 40_000;

/** Of a test that uses all this. */
export const busyRestartMs = 150_000;

/** What the sessions use: one gateway, or several behind a balancer. */
export interface Restarted {
  readonly url: string;
  /** How many sessions there are; 50 unless it is said. */
  readonly sessionCount?: number;
  /** What all gateways logged. */
  logs(): Record<string, unknown>[];
}

/** A call that the server never answers by itself; resolves when the server has it. */
async function hang(session: Session, key: string) {
  const exchange = await session.send({
    jsonrpc: '2.0',
    id: `hang-${key}`,
    method: 'tools/call',
    params: { name: 'wait_for_cancel', arguments: { key }, _meta: { progressToken: key } },
  });
  // Not its log message: that is of no call, and a server behind HTTP drops it where nobody listens yet.
  await exchange.nextMessage(({ params }) => params?.progressToken === key, {
    deadlineMs,
    what: 'the begin of a call',
  });
  return exchange;
}

/**
 * Asks on and on, with what may be run again and what may not, until told to stop. Lists are answered by the server,
 * unless nothing listens; what became of the calls is noted.
 */
function work(session: Session, name: string) {
  let isWorking = true;
  const outcomes: string[] = [];
  const done = (async () => {
    for (let n = 0; isWorking; n++) {
      const list = await session.request('tools/list');
      const [listed, ...more] = list.messages.map(({ result, error }) =>
        result?.tools ? 'listed' : error?.data.reason,
      );
      // A server that nothing listens for is told within two seconds.
      expect(['listed', 'server_unreachable']).toContain(listed);
      expect(more).toEqual([]);
      const text = `${name}, call ${n}`;
      const call = await session.request('tools/call', { name: 'echo', arguments: { text } });
      const answers = call.messages.filter(({ result, error }) => result ?? error);
      expect(answers).toHaveLength(1);
      const [{ result, error }] = answers;
      await delay(thinkMs);
      outcomes.push(result?.content[0].text === text ? 'answered' : error?.data.reason);
    }
  })();
  // A failure is seen at the next wait.
  done.catch(() => undefined);
  return {
    outcomes,
    done,
    async stop() {
      isWorking = false;
      await done;
    },
  };
}

/**
 * Restarts the server under busy sessions: no session ends, what may be run again is, every other call in flight is
 * answered with what is known of it, and afterwards all is as before (P3).
 */
export async function restartUnderBusySessions(
  server: RemoteServer,
  { url, logs, sessionCount = 50 }: Restarted,
): Promise<void> {
  const sessions = await Promise.all(Array.from({ length: sessionCount }, () => initialize(url)));
  const hung = await Promise.all(sessions.map((session, index) => hang(session, `k${index}`)));
  const workers = sessions.map((session, index) => work(session, `session ${index}`));
  const moreFrom = async (count: number): Promise<void> => {
    const before = workers.map(({ outcomes }) => outcomes.length);
    const isMore = () => workers.every(({ outcomes }, index) => outcomes.length >= (before[index] as number) + count);
    const failed = Promise.all(workers.map(({ done }) => done));
    await Promise.race([failed, waitFor(isMore, { what: `${count} more calls of every session`, deadlineMs })]);
  };
  await moreFrom(3);
  server.restart();

  for (const exchange of hung) {
    const answer = await exchange.nextMessage(({ id }) => String(id).startsWith('hang-'), {
      deadlineMs,
      what: 'the end of a call in flight',
    });
    expect(answer.error.data.reason).toBe('server_exited');
  }
  const restored = () => logs().filter(({ msg }) => msg === 'server restored').length;
  await waitFor(() => restored() === sessionCount, { what: 'all sessions to be restored', deadlineMs });
  await moreFrom(2);
  await Promise.all(workers.map((worker) => worker.stop()));

  const known = ['answered', 'server_exited', 'server_unreachable', 'server_refused'];
  for (const { outcomes } of workers) {
    expect(outcomes.filter((outcome) => !known.includes(outcome))).toEqual([]);
    expect(outcomes.at(-1)).toBe('answered');
  }
  expect(logs().filter(({ msg }) => msg === 'session ended')).toEqual([]);
  await Promise.all(sessions.map((session) => session.delete()));
}
