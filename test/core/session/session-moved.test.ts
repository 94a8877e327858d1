import { describe, expect, it } from 'vitest';
import { readMessage } from '../../support/fake-backend.ts';
import { acceptsJson, createFakeReply } from '../../support/fake-reply.ts';
import { turn } from '../../support/wait-for.ts';
import { adopt, key, progress } from './record/adoption-fixture.ts';
import { note, request } from './session-fixture.ts';

describe('a session that another instance has taken', () => {
  /** Somebody else takes it over; it notices at its next event. */
  const lose = async ({ store, now, fake }: Awaited<ReturnType<typeof adopt>>) => {
    await store.sessions.takeOver(key, { owner: 'instance-2', epoch: now }, 'instance-3');
    fake.backend.says(note('never told'));
    await turn();
  };

  it('[P6] ends here as moved, with its server, sends nothing more and keeps its record', async () => {
    const session = await adopt();
    await session.restored();
    const get = createFakeReply();
    session.session.listen(undefined, get);
    await turn();
    await lose(session);
    expect(await session.telemetry.ends.next()).toBe('moved');
    expect(session.fake.living).toEqual([]);
    expect([get.sink.state, get.sink.messages]).toEqual([
      'ended',
      [{ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }], // by the restore, before it was taken
    ]);
    expect(await session.store.sessions.find(key)).toMatchObject({ owner: 'instance-3' });
    expect(session.session.leavesNoRecord).toBe(false);
  });

  it('is not ready from the moment at which its end is reported', async () => {
    const session = await adopt();
    await session.restored();
    const ready: boolean[] = [];
    const reply = createFakeReply(acceptsJson);
    const { answer } = reply;
    reply.answer = (given) => {
      ready.push(session.session.isReady);
      answer(given);
    };
    session.session.post({ messages: [readMessage(request('w'))], isBatch: false }, reply);
    session.onEnding(() => void ready.push(session.session.isReady));
    await lose(session);
    expect(ready).toEqual([false, false]);
  });

  it('[P3] tells a client without an event id that the outcome is unknown, and ends the streams of others', async () => {
    const session = await adopt();
    await session.restored();
    const waiting = session.post(request('w'));
    const streaming = session.post(request('s', 'tools/call', { name: 'x', _meta: { progressToken: 't' } }));
    session.fake.backend.says(progress(1));
    await streaming.answered();
    await turn();
    await lose(session);
    expect(waiting.given).toEqual({ kind: 'fault', reason: 'outcome_unknown', id: 'w' });
    expect([streaming.sink.messages, streaming.sink.state]).toEqual([[progress(1)], 'ended']);
    expect(streaming.sink.ids.length).toBeGreaterThan(0);
  });
});
