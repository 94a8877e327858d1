import { describe, expect, test } from 'vitest';
import { initialize } from '../support/http-client.ts';
import { logged, requestOf, responseOf, startMoody, statusOf, toolCall } from './moody.ts';

/** Bytes as `moody-server.mjs` writes them: each character is one. */
const bytes = (...parts: (string | number)[]): string =>
  parts
    .map((part) => (typeof part === 'number' ? String.fromCharCode(part) : Buffer.from(part).toString('latin1')))
    .join('');

const noise: readonly (readonly [string, string])[] = [
  ['a NUL', bytes('{"jsonrpc":"2.0",', 0, '"method":"x"}')],
  ['no JSON', 'Server listening on stdio'],
  ['half of a message', '{"jsonrpc":"2.0","method":"x"'],
  ['two messages on a line', '{"jsonrpc":"2.0","method":"x"}{"jsonrpc":"2.0","method":"x"}'],
  ['a scalar', '42'],
  ['null', 'null'],
  ['an empty array', '[]'],
  ['no jsonrpc', '{"method":"x"}'],
  ['another jsonrpc', '{"jsonrpc":"1.0","method":"x"}'],
  ['a result and an error', '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}'],
  ['a key twice', '{"jsonrpc":"2.0","id":7,"id":8,"result":{}}'],
  ['an id that is an object', '{"jsonrpc":"2.0","id":{"toString":1},"result":{}}'],
  ['an id that is a fraction', '{"jsonrpc":"2.0","id":1.5,"result":{}}'],
  ['an id of 300 characters', `{"jsonrpc":"2.0","id":"${'x'.repeat(300)}","method":"x"}`],
  ['a hundred thousand brackets that are not closed', '['.repeat(100_000)],
];

describe('lines of a child that are no messages', () => {
  test('[F17] are dropped and counted, each kind, and the session goes on', async () => {
    const { gateway } = await startMoody();
    for (const [kind, text] of noise) {
      const session = await initialize(gateway.url);
      const get = await session.getStream();
      const { messages } = await session.request('tools/call', { name: 'say', arguments: { texts: [`${text}\n`] } });
      expect([kind, messages]).toMatchObject([kind, [{ id: 1, result: {} }]]);
      expect([kind, await statusOf(session)]).toEqual([kind, 200]);
      expect([kind, get.events.items.filter(({ data }) => data !== '')]).toEqual([kind, []]);
      await session.delete();
    }
    const ends = await logged(gateway, 'session ended', noise.length);
    expect(ends).toEqual(noise.map(() => expect.objectContaining({ noise: 1 })));
  });

  test('[F17] are shown at debug with their first 200 bytes, and not at all at info', async () => {
    for (const [level, shown] of [
      ['debug', 1],
      ['info', 0],
    ] as const) {
      const { gateway } = await startMoody({}, { args: ['--log-level', level] });
      const session = await initialize(gateway.url);
      await session.callTool('say', { texts: [`canary ${'y'.repeat(500)}\n`] });
      await session.delete();
      await logged(gateway, 'session ended');
      const found = gateway.logs().filter(({ text }) => String(text).includes('canary'));
      expect(found).toHaveLength(shown);
      for (const { text } of found) expect(String(text)).toHaveLength(200);
      if (shown === 0) expect(gateway.stderr()).not.toContain('canary');
    }
  });
});

describe('answers of a child that answer nothing', () => {
  test('[F17] to unknown ids are dropped and counted', async () => {
    const { gateway } = await startMoody();
    const session = await initialize(gateway.url);
    const texts = ['{"jsonrpc":"2.0","id":99,"result":{}}\n', '{"jsonrpc":"2.0","id":"x","result":{}}\n'];
    const { messages } = await session.request('tools/call', { name: 'say', arguments: { texts } });
    expect(messages).toHaveLength(1);
    await session.delete();
    expect(await logged(gateway, 'session ended')).toMatchObject([{ unknown_response: 2 }]);
  });

  test('[F17] [P3] with a string for the number that was sent, reach its call with the number', async () => {
    const { gateway } = await startMoody();
    const session = await initialize(gateway.url);
    const call = session.send(toolCall(5, 'say', { texts: ['{"jsonrpc":"2.0","id":"5","result":{}}\n'], ends: false }));
    expect(await responseOf(call, 5)).toEqual({ jsonrpc: '2.0', id: 5, result: {} });
    expect(await statusOf(session)).toBe(200);
    await session.delete();
  });

  test('[F17] [P3] as a batch are taken apart, in any revision, and each reaches its call', async () => {
    for (const version of ['2025-03-26', '2025-11-25']) {
      const moody = await startMoody();
      const session = await initialize(moody.gateway.url, { version });
      const first = session.send(requestOf(1, 'tools/list', {}, { hangsUntil: 9 }));
      const second = session.send(requestOf(2, 'tools/list', {}, { hangsUntil: 9 }));
      await moody.toldBy(0, 4);
      const batch = '[{"jsonrpc":"2.0","id":2,"result":{"n":2}},{"x":1},{"jsonrpc":"2.0","id":1,"result":{"n":1}}]\n';
      await session.request('tools/call', { name: 'say', arguments: { texts: [batch] } }, { id: 's' });
      expect(await responseOf(first, 1)).toMatchObject({ result: { n: 1 } });
      expect(await responseOf(second, 2)).toMatchObject({ result: { n: 2 } });
      await session.delete();
      expect(await logged(moody.gateway, 'session ended')).toMatchObject([{ noise: 1 }]);
    }
  });
});
