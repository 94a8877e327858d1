import { expect, it, onTestFinished } from 'vitest';
import { allHeldBytes, HeldBytes } from '../../../src/core/backend/held-bytes.ts';
import { WaitingList, WaitingRequests } from '../../../src/core/backend/waiting-budget.ts';
import { createMessage } from '../../../src/core/protocol/message/message.ts';

const mebibyte = 1024 * 1024;
const waitingOf = (id: number) => ({
  message: createMessage({ id, method: 'tools/call', params: { a: 'x'.repeat(mebibyte) } }),
});

it('[S-21] [P8] counts the bytes of all queues and tables together', () => {
  const before = allHeldBytes();
  const [first, second] = [new HeldBytes(), new HeldBytes()];
  first.bytes += 10;
  second.bytes += 5;
  expect(allHeldBytes() - before).toBe(15);
  first.bytes = 0;
  expect([allHeldBytes() - before, first.bytes, second.bytes]).toEqual([5, 0, 5]);
  second.bytes -= 5;
  expect(allHeldBytes()).toBe(before);
});

it('[S-21] [P8] a list of requests that wait is full at its limit, and what leaves it makes room', () => {
  const before = allHeldBytes();
  const list = new WaitingList<number>((bytes) => bytes);
  onTestFinished(() => void list.takeAll());
  for (let n = 1; n <= 16; n += 1) list.push(mebibyte - n);
  expect(list.hasRoomFor(136)).toBe(true); // 1 + 2 + … + 16
  expect(list.hasRoomFor(137)).toBe(false);
  expect(list.shift()).toBe(mebibyte - 1);
  list.unshift(mebibyte - 1);
  expect(list.first).toBe(mebibyte - 1);
  expect(list.remove((bytes) => bytes < mebibyte - 8)).toBe(true);
  expect(list.remove((bytes) => bytes < mebibyte - 8)).toBe(false);
  expect([list.length, list.find((bytes) => bytes === mebibyte - 8)]).toEqual([8, mebibyte - 8]);
  expect(allHeldBytes() - before).toBe(8 * mebibyte - 36);
  expect(list.takeAll()).toHaveLength(8);
  expect(allHeldBytes()).toBe(before);
});

it('[S-21] [P8] a table of requests that wait counts what it keeps', () => {
  const before = allHeldBytes();
  const table = new WaitingRequests<{ message: ReturnType<typeof createMessage> }>(100);
  let id = 0;
  while (table.hasRoomFor(id, waitingOf(id))) table.set(id, waitingOf(id++));
  expect(id).toBe(15); // each is a little larger than 1 MiB
  expect(allHeldBytes() - before).toBe(table.bytes);
  table.delete(3);
  table.delete(3);
  expect(allHeldBytes() - before).toBe(table.bytes);
  table.clear();
  expect(allHeldBytes()).toBe(before);
});
