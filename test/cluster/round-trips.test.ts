import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '../support/cluster.ts';
import { testFidelity } from '../support/fidelity-suite.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize, type Message, type Session, type SessionOptions } from '../support/http-client.ts';
import { findStarter, waitUntilGone } from '../support/processes.ts';
import { call, childrenOf, instancesOf, settle, startFastCluster, statusOf, stopSound } from './fast.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startFastCluster({ command: everythingFixture, args: ['--timeouts.grace', '300ms'] });
  await settle(cluster);
});
afterAll(() => stopSound(cluster));

/** A session as it is had by way of its owner, and by way of the two other instances. */
async function openOn(owner: number, options: SessionOptions = {}): Promise<readonly [Session, Session, Session]> {
  const [own, one, two] = instancesOf(cluster, owner);
  const session = await initialize(own, options);
  return [session, session.at(one), session.at(two)];
}

const named =
  (method: string) =>
  (message: Message): boolean =>
    message.method === method;
const answerTo =
  (id: string | number) =>
  (message: Message): boolean =>
    message.id === id && message.method === undefined;
const textOf = (response: Message): string => response.result.content[0].text;

const questions = [
  [
    'sampling/createMessage',
    'test_sampling',
    { prompt: 'hm' },
    { role: 'assistant', content: { type: 'text', text: 'ANSWER' }, model: 'm' },
  ],
  [
    'elicitation/create',
    'test_elicitation',
    { message: 'who' },
    { action: 'accept', content: { username: 'ANSWER', email: 'a@b.c' } },
  ],
  ['roots/list', 'roots', {}, { roots: [{ uri: 'file:///ANSWER', name: 'n' }] }],
] as const;

describe('a session', () => {
  const owner = 1;
  const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };

  test('has its process there, whoever is asked', async () => {
    for (const session of await openOn(owner)) {
      const { ppid } = JSON.parse(textOf({ result: await session.callTool('describe_process') }));
      const starter = await findStarter(cluster.instances[owner]?.pid as number);
      expect(ppid).toBe(starter?.pid ?? 'no starter');
    }
  });

  test.each(questions)('[R7.23b] [P2] %s: stream and answer by way of any two', async (method, tool, args, answer) => {
    const sessions = await openOn(owner, { capabilities });
    for (const order of [
      [1, 2],
      [2, 1],
      [0, 1],
      [1, 0],
    ] as const) {
      const [asking, answering] = order.map((index) => sessions[index]) as [Session, Session];
      const stream = await asking.send(call('q', tool, args));
      expect(stream.headers['content-type']).toBe('text/event-stream');
      const question = await stream.nextMessage(named(method));
      const accepted = await answering.respond(question.id, answer);
      expect([accepted.status, accepted.text]).toEqual([202, '']);
      expect(textOf(await stream.nextMessage(answerTo('q')))).toContain('ANSWER');
      await stream.answer();
    }
  });

  test('[R7.24] notifications/cancelled by way of another instance reaches the process, and the call ends', async () => {
    const [own, one, two] = await openOn(owner);
    for (const [key, calling, cancelling] of [
      ['a', one, two],
      ['b', own, one],
      ['c', two, own],
    ] as const) {
      const stream = await calling.send(call(key, 'wait_for_cancel', { key }));
      await stream.nextMessage(({ params }) => params?.data === `waiting ${key}`);
      const accepted = await cancelling.notify('notifications/cancelled', { requestId: key, reason: `not ${key}` });
      expect([accepted.status, accepted.text]).toEqual([202, '']);
      // P3: ended by an error, since this server does not answer a cancelled call.
      expect(await stream.nextMessage(answerTo(key))).toMatchObject({ error: { data: { reason: 'cancelled' } } });
      await stream.answer();
      const cancelled = JSON.parse(textOf({ result: await cancelling.callTool('cancellations') }));
      expect(cancelled.at(-1)).toEqual({ key, reason: `not ${key}` });
    }
  });

  test('[R7.20b] [R7.21] DELETE by way of another instance: 2xx, then 404 everywhere, and its process ends', async () => {
    const [own, one, two] = await openOn(owner);
    const { pid } = JSON.parse(textOf({ result: await two.callTool('describe_process') }));
    const process = (await childrenOf(cluster)).filter((child) => child.pid === pid);
    expect(process).toHaveLength(1);
    const streams = await Promise.all([own, one].map((session) => session.getStream()));
    const held = await two.send(call('held', 'wait_for_cancel', { key: 'k' }));

    expect((await one.delete()).status).toBeGreaterThanOrEqual(200);
    // The first of the streams was taken over by the second, and all end in order.
    await Promise.all([...streams, held].map((stream) => stream.answer()));
    await waitUntilGone(process);
    for (const { url } of cluster.instances) {
      for (const method of ['DELETE', 'GET', 'POST']) expect(await statusOf(url, own.id, method)).toBe(404);
    }
  });

  test('[R7.01] a notification is accepted with 202 and no body on each instance', async () => {
    for (const session of await openOn(owner)) {
      const { status, text } = await session.notify('notifications/roots/list_changed');
      expect([status, text]).toEqual([202, '']);
    }
  });

  test('[R7.02] a batch of a 2025-03-26 session is answered as one on each instance', async () => {
    for (const session of await openOn(owner, { version: '2025-03-26' })) {
      const notification = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
      const batch = [call(1, 'echo', { text: 'one' }), notification, call('2', 'echo', { text: 'two' })];
      const { messages } = await (await session.send(batch)).answer();
      expect(new Map(messages.map((message) => [message.id, textOf(message)]))).toEqual(
        new Map<unknown, string>([
          [1, 'one'],
          ['2', 'two'],
        ]),
      );
      const { status, text } = await (await session.send([notification, notification])).answer();
      expect([status, text]).toEqual([202, '']);
    }
  });

  test('[R7.25] [R7.18] [P2] a GET stream on another instance gets what the process says outside of calls', async () => {
    const [, one, two] = await openOn(owner);
    const stream = await one.getStream();
    const [first, second] = [1, 2].map((data) => ({
      method: 'notifications/message',
      params: { level: 'error', data },
    }));
    await two.callTool('later', { notification: first });
    expect(await stream.nextMessage()).toEqual({ jsonrpc: '2.0', ...first });
    // Said while nobody listens, it is kept for the next one, wherever.
    stream.drop();
    const { id } = stream.events.items.at(-1) ?? {};
    await one.callTool('later', { notification: second, ms: 0 });
    const next = await two.getStream(id);
    expect(await next.nextMessage()).toEqual({ jsonrpc: '2.0', ...second });
    next.drop();
  });

  describe('[P1] keeps texts as they are', () => {
    let session: Session;
    beforeAll(async () => {
      [, session] = await openOn(owner);
    });
    testFidelity(() => session);
  });
});
