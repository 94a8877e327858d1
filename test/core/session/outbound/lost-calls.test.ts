import { expect, it, onTestFinished, vi } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { noHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import { lossReason } from '../../../../src/core/session/end-reason.ts';
import { asMessage } from '../../../support/as-message.ts';
import { acceptsJson } from '../../../support/fake-reply.ts';
import { openSession, type SessionInit } from '../one-session.ts';
import { request } from '../session-fixture.ts';

const list = request(1, 'tools/list', {});

/** One list in flight in a session, and what its servers get of it. */
async function createList(init: SessionInit = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const one = await openSession({ server: { onBackendExit: 'restore' }, ...init });
  const reply = one.post([list], { accepts: acceptsJson });
  const { fake } = one;
  const settled = async (ms = 0): Promise<void> => void (await vi.advanceTimersByTimeAsync(ms));
  return {
    ...one,
    reply,
    settled,
    /** How often each server got the list. */
    runs: () => fake.opened.map(({ sent }) => sent.items.filter(({ id }) => id === 1).length),
    /** The newest server ends, and the next one starts. */
    async lose(end: Partial<BackendEnd> = {}): Promise<void> {
      fake.backend.ends(end);
      await settled(60_000);
    },
    /** The newest server has lost the POST of the list. */
    breakPost: (reason: Reason = 'server_unreachable', isFinal = false) => fake.backend.leaves([1], reason, isFinal),
  };
}

/** Longer than a call whose POST broke waits. */
const waitMs = 1_000;
const fault = (reason: Reason) => ({ kind: 'fault', reason, id: 1 });

it('[P3] a list call whose POST breaks just before its server is lost runs again once at the next one', async () => {
  const { runs, breakPost, lose, reply } = await createList();
  breakPost();
  await lose();
  expect([runs(), reply.given]).toEqual([[1, 1], undefined]);
});

it('[P3] a list call whose POST breaks is sent again to a surviving server, and to the next one after a loss', async () => {
  const { runs, breakPost, lose, settled, reply, fake } = await createList();
  breakPost();
  await settled(waitMs);
  expect(runs()).toEqual([2]);
  await lose();
  expect(runs()).toEqual([2, 1]);
  fake.backend.says({ jsonrpc: '2.0', id: 1, result: {} });
  expect(reply.given).toMatchObject({ kind: 'json', json: { id: 1 } });
});

it('[P3] [P8] a list call runs again only once after a broken POST and once after a loss', async () => {
  const first = await createList();
  first.breakPost();
  await first.settled(waitMs);
  first.breakPost();
  expect([first.runs(), first.reply.given]).toEqual([[2], fault('server_unreachable')]);

  const second = await createList();
  await second.lose();
  await second.lose();
  expect([second.runs(), second.reply.given]).toEqual([[1, 1, 0], fault('server_exited')]);

  const third = await createList();
  await third.lose();
  third.breakPost();
  expect([third.runs(), third.reply.given]).toEqual([[1, 1], fault('server_unreachable')]);
});

it('[P3] [P7] a list call that has run is not reported as unsent if there is no room to send it again', async () => {
  const lost = await createList({ limits: { maxQueuedBytes: 10 } });
  await lost.lose();
  expect([lost.runs(), lost.reply.given]).toEqual([[1, 0], fault('server_exited')]);

  const broken = await createList();
  broken.breakPost();
  await broken.settled(waitMs);
  broken.breakPost('server_busy');
  expect(broken.reply.given).toEqual(fault('server_unreachable'));

  const fresh = await createList();
  fresh.breakPost('server_busy');
  expect(fresh.reply.given).toEqual(fault('server_busy'));
});

it('[C-14] messages that a lost server did not take are all sent again, including the client’s progress', async () => {
  const texts = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":"t"}}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}',
    '{"jsonrpc":"2.0","id":9,"result":{}}',
  ];
  const { lose, fake } = await createList();
  // The reader recognises progress by its bytes once it has met the same form before.
  const undelivered = [...texts, ...texts.slice(1, 2)].map((text) => ({
    message: asMessage(text),
    headers: noHeaders,
  }));
  await lose({ undelivered });
  const again = fake.backend.sent.items.slice(1).map((message) => JSON.stringify(message));
  expect(again).toEqual([texts[0], texts[1], texts[1]]); // an answer is for the server that asked
});

it('[J-03] a list call that its backend has run again or waited for does not run again, so that the times do not add up', async () => {
  const { runs, breakPost, settled, reply } = await createList();
  breakPost('server_unreachable', true);
  await settled(waitMs);
  expect([runs(), reply.given]).toEqual([[1], fault('server_unreachable')]);
});

it.each([
  ['line_too_long', 'line_too_long'],
  ['memory_limit', 'memory_limit'],
  ['exited', 'server_exited'],
  ['failed', 'server_exited'],
] as const)('the end of a backend by %s is %s for its calls', (reason, told) => {
  expect(lossReason({ reason, detail: '' })).toBe(told);
});

it('[P7] a call that waited for the store in vain has not run, unless it was sent before', async () => {
  let isOwner = true;
  const { reply, post, fake, settled } = await createList({ isOwner: () => isOwner });
  isOwner = false;
  fake.backend.ends();
  const late = post([request(2)], { accepts: acceptsJson });
  await settled(60_000);
  expect([reply.given, late.given]).toEqual([fault('server_unreachable'), { ...fault('store_unavailable'), id: 2 }]);
});
