import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import {
  maxNoiseTexts,
  readServerTexts,
  reportNoise,
  type ServerMessages,
} from '../../../../src/core/protocol/message/server-texts.ts';
import { beginTurn, shareOfTurn, spend } from '../../../../src/core/util/timing/work-meter.ts';

const log = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}';
const nested = '['.repeat(1_001) + ']'.repeat(1_001);

const shown = ({ messages, noise }: ServerMessages) => ({
  messages: messages.map(({ text }) => text.toString()),
  noise: noise.map(String),
});
const read = async (...texts: string[]) => shown(await readServerTexts(texts.map((text) => Buffer.from(text))));

describe('[R6.03] [F17] server output that is no message', () => {
  it.each([
    ['words', 'Server listening'],
    ['nothing', ''],
    ['a value', '42'],
    ['a string', '"text"'],
    ['an object that is no JSON-RPC', '{"level":"info"}'],
    ['another JSON-RPC', '{"jsonrpc":"1.0","method":"x"}'],
    ['half of a message', '{"jsonrpc":"2.0","meth'],
    ['an empty array', '[]'],
    ['an array of what is no message', '[1]'],
    ['a line of a log in JSON', '{"level":30,"id":5,"error":"x"}'],
    ['a log of what the server has received', 'in: {"jsonrpc":"2.0","id":5,"method":"x"}'],
    ['a too complex text without an id', `{"jsonrpc":"2.0","result":${nested}}`],
  ])('such as %s is noise, and the next message is read', async (_, line) => {
    expect(await read(line, log)).toEqual({ messages: [log], noise: [line] });
  });

  it('[P8] is noise if it is large, too', async () => {
    const large = 'x'.repeat(600 * 1024);
    expect(await read(large, log)).toEqual({ messages: [log], noise: [large] });
  });
});

describe('[G-02] [P8] a flood of lines that are no messages', () => {
  it('is one read of a few texts and a number', async () => {
    const { noise, unkeptNoise } = await readServerTexts(Array.from({ length: 32_768 }, () => Buffer.from('x')));
    expect([noise.length, unkeptNoise]).toEqual([maxNoiseTexts, 32_768 - maxNoiseTexts]);
  });

  it('is told as a few lines, of which the last carries the number of the others', () => {
    const [a, b] = ['a', 'b'].map((text) => Buffer.from(text)) as [Buffer, Buffer];
    const told: [string, number | undefined][] = [];
    const receiver = { onNoise: (text: Buffer, more?: number) => void told.push([text.toString(), more]) };
    reportNoise(receiver, []);
    reportNoise(receiver, [{ noise: [a] }, { noise: [] }, { noise: [b], unkeptNoise: 3 }]);
    expect(told).toEqual([
      ['a', undefined],
      ['b', 3],
    ]);
    told.length = 0;
    reportNoise(
      receiver,
      Array.from({ length: 100 }, () => ({ noise: [a] })),
    );
    expect(told).toHaveLength(maxNoiseTexts);
    expect(told.reduce((sum, [, more = 0]) => sum + 1 + more, 0)).toBe(100);
  });
});

it('[G-06] [P8] an error of more than 512 KiB is replaced: it would be walked over again and again', async () => {
  const error = (bytes: number) => `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"${'x'.repeat(bytes)}"}}`;
  const { messages } = await readServerTexts([600_000, 500_000].map((bytes) => Buffer.from(error(bytes))));
  expect(messages.map(({ id, isError, standIn }) => [id, isError, standIn?.reason])).toEqual([
    [7, true, 'response_too_complex'],
    [7, true, undefined],
  ]);
});

it('[P8] small texts of many peers for which a turn has no room share the next turns', async () => {
  await nextTurn();
  spend(shareOfTurn);
  let unread = 0;
  for (let peer = 0; peer < 100; peer += 1) {
    unread += 1;
    void Promise.resolve(readServerTexts([Buffer.from(log)])).then(() => (unread -= 1));
  }
  let turns = 0;
  for (; unread > 0 && turns < 1_000; turns += 1) await nextTurn();
  expect(turns).toBeGreaterThan(0);
  expect(turns).toBeLessThanOrEqual(4); // and not four turns for each of them
});

describe('an array of messages from a server', () => {
  it('is split into its messages, with their texts unchanged, and is noise if something in it is none', async () => {
    const inside = '{"jsonrpc":"2.0", "method":"notifications/message","params":{"n":1e400}}';
    const response = '{"jsonrpc":"2.0","id":1,"result":{}}';
    expect(await read(`[ ${inside} , ${response}]`)).toEqual({ messages: [inside, response], noise: [] });
    const mixed = `[ ${inside} ,7,${response}]`;
    expect(await read(mixed)).toEqual({ messages: [inside, response], noise: [mixed] });
  });
});

describe('[P8] a large text', () => {
  it('is read in several turns, and the order of the messages stays', async () => {
    const large = `{"jsonrpc":"2.0","id":1,"result":{"large":"${'x'.repeat(2 ** 20)}"}}`;
    const reading = readServerTexts([Buffer.from(log), Buffer.from(large), Buffer.from(log)]);
    expect(reading).toBeInstanceOf(Promise);
    expect(shown(await reading)).toEqual({ messages: [log, large, log], noise: [] });
  });

  it('is not awaited if there is none', () => {
    beginTurn();
    expect(readServerTexts([Buffer.from(log)])).not.toBeInstanceOf(Promise);
  });
});
