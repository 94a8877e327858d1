import type { OutgoingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { type HostedClient, hostedClients } from '../../support/hosted-clients.ts';
import { waitFor } from '../../support/wait-for.ts';

/** What became of the calls of many hosted clients. */
interface Outcomes {
  answered: string[];
  /** Calls without an answer, and later calls of their turn, which the client did not send. */
  broken: string[];
  /** Requests that the gateway refused. */
  refused: string[];
}

export interface RestartOptions {
  /** The endpoint, which stays the same. */
  readonly url: string;
  /** The calls that the server has started or done, once for each time. */
  journal(state: 'started' | 'done'): Promise<readonly string[]>;
  readonly clients: number;
  readonly kills: number;
  /** The headers of a client. */
  headersOf?(index: number): OutgoingHttpHeaders;
  /** Kills the gateway and starts it again. */
  restart(): Promise<unknown>;
}

const callsInTurn = 3;

/**
 * Hosted clients call a server with a journal while its gateway is killed and started again. Every client goes on by itself, with
 * its next turn. The journal agrees with the clients: each answered call has run once, and no call has run twice.
 */
export async function checkHostedClients({
  url,
  journal,
  clients,
  kills,
  restart,
  headersOf = () => ({}),
}: RestartOptions): Promise<Outcomes> {
  const outcomes: Outcomes = { answered: [], broken: [], refused: [] };
  let killed = 0;
  const work = async (client: HostedClient, index: number): Promise<void> => {
    let hasRecovered = false;
    for (let turn = 0; killed < kills || !hasRecovered; turn += 1) {
      const isAfterKills = killed === kills;
      const marks = Array.from({ length: callsInTurn }, (_, call) => `${index}-${turn}-${call}`);
      const answered = new Set<string>();
      const onMessages = (messages: readonly { result?: unknown; error?: unknown }[], { args }: { args?: object }) => {
        if (messages.some(({ result }) => result !== undefined)) answered.add((args as { call: string }).call);
      };
      const calls = marks.map((call) => ({ tool: 'work', args: { call, ms: index % 20 } }));
      const options = { headers: headersOf(index), conversation: `v1/${index}`, onMessages };
      await client.turn(url, calls, options).catch(async ({ message }: Error) => {
        if (/(?:got|failed with) \d/.test(message)) outcomes.refused.push(message);
        await delay(20);
      });
      outcomes.answered.push(...answered);
      outcomes.broken.push(...marks.filter((mark) => !answered.has(mark)));
      hasRecovered = isAfterKills && answered.size === callsInTurn;
    }
  };
  const working = Promise.all(
    Array.from({ length: clients }, (_, index) =>
      work(hostedClients[index % hostedClients.length] as HostedClient, index),
    ),
  );
  while (killed < kills) {
    const enough = outcomes.answered.length + clients;
    await waitFor(() => outcomes.answered.length >= enough, { what: 'more answers', deadlineMs: 120_000 });
    await restart();
    killed += 1;
  }
  await working;
  expect(outcomes.refused).toEqual([]);
  const started = await journal('started');
  expect(started).toHaveLength(new Set(started).size);
  const done = new Set(await journal('done'));
  expect(outcomes.answered.filter((mark) => !done.has(mark))).toEqual([]);
  expect(outcomes.answered.length).toBeGreaterThan(clients * callsInTurn);
  return outcomes;
}
