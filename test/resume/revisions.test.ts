import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectRaw } from '../hardening/raw-http.ts';
import { faultsOfTranscript } from '../support/checker.ts';
import { type Gateway, startGateway } from '../support/gateway.ts';
import { waitFor } from '../support/wait-for.ts';
import { answerTexts, call, openCounting, textsOf, toldTexts, withCounting } from './counting.ts';

let gateway: Gateway;
beforeAll(async () => {
  gateway = await startGateway(withCounting('--sse.streamAfter', '5ms'));
});
afterAll(async () => void (await gateway?.stop()));

const sessionEnds = () => gateway.logs().filter(({ msg }) => msg === 'session ended');

describe.each(['2024-11-05', '2025-03-26', '2025-06-18'])('in a session of revision %s', (version) => {
  test('[R7.14] [P4] nothing is primed, and a call is resumable from its first real event on', async () => {
    const session = await openCounting(gateway.url, { version });
    const posted = session.listen({ body: call('c', 'test/hold') });
    await posted.opened;
    await session.emit('c', 1);
    const { id: after } = await posted.events.next();
    posted.drop();
    await posted.ended;
    await session.emit('c', 2);
    await session.finish('c');
    const resumed = await session.listen({ after }).ended;
    const expected = { texts: answerTexts('c', 3), primes: false, isWhole: true };
    expect(faultsOfTranscript([posted.listened, resumed], expected)).toEqual([]);
    await session.delete();
  });

  test('[P3] [P4] a call whose client left before any event is undeliverable, and counted', async () => {
    const session = await openCounting(gateway.url, { version });
    const posted = session.listen({ body: call('u', 'test/hold') });
    expect((await posted.opened).status).toBe(200); // it is a stream by time, still without an event
    posted.drop();
    await posted.ended;
    await session.lines();
    await session.finish('u');
    const before = sessionEnds().length;
    await session.delete();
    await waitFor(() => sessionEnds().length > before);
    expect(sessionEnds().at(-1)).toMatchObject({ reason: 'deleted', undeliverable: 1 });
  });

  test('[R7.18] a GET stream is resumable from its first event on', async () => {
    const session = await openCounting(gateway.url, { version });
    const first = session.listen();
    await first.opened;
    await session.tell(1, 2);
    const { id: after } = await first.events.next();
    first.drop();
    await first.ended;
    await session.tell(3, 3);
    const second = session.listen({ after });
    await second.events.next(({ data }) => data === toldTexts(3)[2]);
    second.drop();
    expect(textsOf(second.events.items)).toEqual(toldTexts(3).slice(1));
    await session.delete();
  });
});

test('[P4] from 2025-11-25 on a call whose client left after the priming event alone is collected', async () => {
  const session = await openCounting(gateway.url);
  const posted = session.listen({ body: call('p', 'test/hold') });
  const { id: after, data } = await posted.events.next();
  expect(data).toBe('');
  posted.drop();
  await posted.ended;
  await session.emit('p', 2);
  await session.finish('p');
  expect(textsOf((await session.listen({ after }).ended).events)).toEqual(answerTexts('p', 2));
});

describe('[F23] a client that leaves in the middle of its upload', () => {
  const text = JSON.stringify(call('cut', 'test/count', { count: 0, burst: 1 }));

  test.each([
    ['a body with its length', [`Content-Length: ${text.length}`], text.slice(0, -1)],
    ['a body without a byte', [`Content-Length: ${text.length}`], ''],
    ['a chunk', ['Transfer-Encoding: chunked'], `${text.length.toString(16)}\r\n${text.slice(0, 40)}`],
    [
      'a whole chunk without the last one',
      ['Transfer-Encoding: chunked'],
      `${text.length.toString(16)}\r\n${text}\r\n`,
    ],
    ['the head', [], undefined],
  ])('in %s: nothing is forwarded', async (_, headers, body) => {
    const session = await openCounting(gateway.url);
    await session.lines();
    const connection = await connectRaw(gateway.port);
    const lines = [
      'POST /mcp HTTP/1.1',
      `Host: 127.0.0.1:${gateway.port}`,
      'Content-Type: application/json',
      'Accept: application/json, text/event-stream',
      `Mcp-Session-Id: ${session.id}`,
      ...headers,
    ];
    connection.write(`${lines.join('\r\n')}\r\n${body === undefined ? '' : `\r\n${body}`}`);
    await new Promise<void>((resolve) => connection.socket.end(resolve));
    await connection.closed();
    expect(await session.lines()).toEqual([]);
    await session.delete();
  });

  test('of initialize: no child is started', async () => {
    const before = await gateway.descendants();
    const connection = await connectRaw(gateway.port);
    const head = `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nContent-Type: application/json\r\n`;
    connection.write(
      `${head}Accept: application/json\r\nContent-Length: 500\r\n\r\n{"jsonrpc":"2.0","id":0,"method":"initialize"`,
    );
    await new Promise<void>((resolve) => connection.socket.end(resolve));
    await connection.closed();
    const session = await openCounting(gateway.url); // what the gateway would have started it started before this one
    const pids = (await gateway.descendants())
      .map(({ pid }) => pid)
      .filter((pid) => !before.some((old) => old.pid === pid));
    expect(pids).toHaveLength(1);
    await session.delete();
  });
});
