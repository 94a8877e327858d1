import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { SessionReply } from '../../../src/era/modern-on-legacy/session-reply.ts';
import type { Message } from '../../../src/protocol/message/message.ts';
import { createLoggedBatch } from '../../../src/reply/event-batch.ts';

it('[G-06] [P8] reads a large message in turns of its own, and the events behind it wait', async () => {
  const heard: string[] = [];
  const reply = new SessionReply({
    message: ({ id, method }: Message, { before, at }) => heard.push(`${method ?? id} ${before?.seq} ${at?.seq}`),
    fault: (reason) => heard.push(reason),
    ended: () => heard.push('ended'),
  });
  const event = (seq: number, text: string) => ({ stream: 1, epoch: 5, seq, data: Buffer.from(text) });
  const sink = reply.stream();
  let drains = 0;
  sink.onDrain(() => {
    drains += 1;
  });
  expect(sink.write(createLoggedBatch([event(2, '{"jsonrpc":"2.0","method":"first"}')], 1))).toBe(true);
  expect(heard).toEqual(['first undefined 2']);
  const large = event(3, `{"jsonrpc":"2.0","id":7,"result":{"a":[${'0,'.repeat(1_000_000)}0]}}`);
  expect(sink.write(createLoggedBatch([large, event(4, '{"jsonrpc":"2.0","method":"last"}')], 1))).toBe(false);
  sink.end();
  let turns = 0;
  for (; heard.length < 4; turns += 1) await nextTurn();
  expect(heard).toEqual(['first undefined 2', '7 2 3', 'last 3 4', 'ended']);
  expect(turns).toBeGreaterThan(8);
  await nextTurn();
  expect([drains, reply.newest?.seq]).toEqual([1, 4]);
});
