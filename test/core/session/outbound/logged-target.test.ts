import { describe, expect, it } from 'vitest';
import type { RequestId } from '../../../../src/core/protocol/faults.ts';
import { acceptsBoth, acceptsJson, acceptsSse } from '../../../support/fake-reply.ts';
import { turn } from '../../../support/wait-for.ts';
import { openSession, type SessionInit } from '../one-session.ts';
import { adopt } from '../record/adoption-fixture.ts';
import { note as noteOf, request } from '../session-fixture.ts';

interface Added {
  // biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
  readonly message: any;
  readonly last: boolean;
  readonly settles?: RequestId | undefined;
  readonly opens?: readonly RequestId[];
}

/** Before this revision, a stream does not begin with an event of its own. */
const plain = { protocolVersion: '2025-03-26' };

/** A session, and what it has stored. A message of no bytes is ''. */
async function open({
  handshake = plain,
  maxEventBytes = 300,
}: SessionInit & { readonly maxEventBytes?: number } = {}) {
  const added: Added[] = [];
  const one = await openSession({
    limits: { maxEventBytes },
    handshake,
    wrap: (store) => ({
      ...store,
      log: {
        read: store.log.read,
        append(key, epoch, tail, events) {
          for (const { data, last, settles, opens } of events) {
            const message = data.length === 0 ? '' : JSON.parse(data.toString());
            const ids = opens?.map(({ id }) => id);
            added.push({ message, last, ...(settles !== undefined && { settles }), ...(ids && { opens: ids }) });
          }
          return store.log.append(key, epoch, tail, events);
        },
      },
    }),
  });
  const says = async (...messages: readonly unknown[]): Promise<void> => {
    for (const message of messages) one.backend.says(message);
    await turn();
  };
  return { ...one, added, says };
}

const response = (id: RequestId, result: unknown = {}) => ({ jsonrpc: '2.0', id, result });
const note = noteOf('x');
const tooLarge = (id: RequestId) => ({ id, error: { data: { reason: 'event_too_large' } } });

describe('a stream of an answer in the log', () => {
  it('[P3] opens with the calls that it answers, and settles each with its response', async () => {
    const { post, says, added } = await open();
    post([request(1), request(2), request(3)], { isBatch: true, accepts: acceptsBoth });
    await says(note, response(2), response(1), response(3));
    expect(added).toEqual([
      { message: note, last: false, opens: [1, 2, 3] },
      { message: response(2), last: false, settles: 2 },
      { message: response(1), last: false, settles: 1 },
      { message: response(3), last: true, settles: 3 },
    ]);
  });

  it('begins with a priming event where the revision has one', async () => {
    const { post, says, added } = await open({ handshake: {} });
    post([request(1)], { accepts: acceptsBoth });
    await says(note);
    expect(added).toEqual([
      { message: '', last: false, opens: [1] },
      { message: note, last: false },
    ]);
  });

  it('[P4] is not there for a response that was lost with its connection, which is reported', async () => {
    const { post, says, added, telemetry } = await open();
    post([request(1)], { accepts: acceptsJson }).leave();
    await says(response(1));
    expect([added, telemetry.drops]).toEqual([[], ['undeliverable']]);
  });

  it('is not ended when its session moves again, so that the next owner finds the call pending', async () => {
    const list = request(1, 'tools/list');
    const { session, restored, written } = await adopt({
      events: [[4, note]],
      calls: [{ stream: 4, message: list }],
    });
    await restored();
    await session.end('moved');
    expect(await written(4)).toEqual([]);
  });
});

describe('[P8] a response larger than an event may be', () => {
  const large = response(1, { x: 'x'.repeat(300) });

  it('becomes an error for its request in a stream, also if it came before the stream', async () => {
    const { post, says, added } = await open();
    post([request(1), request(2)], { isBatch: true, accepts: acceptsBoth });
    await says(large, note, { ...large, id: 2 });
    expect(added.map(({ message }) => message)).toMatchObject([tooLarge(1), note, tooLarge(2)]);
  });

  it('passes at the limit', async () => {
    const exact = JSON.stringify(large).length;
    for (const [maxEventBytes, message] of [
      [exact, large],
      [exact - 1, tooLarge(1)],
    ] as const) {
      const { post, says, added } = await open({ maxEventBytes });
      post([request(1)], { accepts: acceptsSse });
      await says(large);
      expect(added).toMatchObject([{ message, last: true }]);
    }
  });
});
