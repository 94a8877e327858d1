import { describe, expect, it, vi } from 'vitest';
import { SessionCalls } from '../../../../../src/core/call/session-calls.ts';
import { readGatewayMessage } from '../../../../../src/core/protocol/message/message.ts';
import type { ClientPost } from '../../../../../src/core/session/session-handle.ts';
import { discardingAnswer } from '../../../../../src/features/eras/modern-on-legacy/session/gateway-answer.ts';
import { InputGate } from '../../../../../src/features/eras/modern-on-legacy/session/input-gate.ts';
import { createFakeReply } from '../../../../support/fake-reply.ts';
import { turn } from '../../../../support/wait-for.ts';

const user = { issuer: '', subject: 'ada', client: '' };

function setUp({ maxWaitMs = 60_000, tellsRequests = false } = {}) {
  const calls = new SessionCalls();
  calls.areIdentified = tellsRequests;
  const ran: unknown[] = [];
  const post = ({ messages: [message] }: ClientPost): void => {
    ran.push(message?.id);
    begin(Number(message?.id));
  };
  const turns = new InputGate(calls, { post }, maxWaitMs);
  calls.onTaken = (call) => turns.noteTaken(call);
  const begin = (id: number): void =>
    calls.add({
      ...{
        id,
        method: 'tools/call',
        progressToken: undefined,
        taskId: undefined,
        answer: discardingAnswer,
        request: undefined,
      },
      ...{ activeAt: 0, startedAt: 0 },
    });
  const ask = (id: number, method = 'tools/call', padding = '') => {
    const reply = createFakeReply();
    const message = readGatewayMessage(
      Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: { padding } })),
    );
    return { reply, admitted: turns.admits({ messages: [message], isBatch: false, group: { user } }, reply) };
  };
  return { calls, turns, begin, ask, ran };
}

describe('the input gate of a group session', () => {
  it('admits one call at a time that may get questions, and every other call', () => {
    const { begin, ask } = setUp();
    expect(ask(1).admitted).toBe(true);
    begin(1);
    expect(ask(2).admitted).toBe(false);
    expect(ask(3, 'tools/list').admitted).toBe(true);
  });

  it('[P8] holds at most 16 MiB of calls that wait', async () => {
    const { calls, begin, ask, ran } = setUp();
    begin(1);
    const padding = 'x'.repeat(5 * 1024 * 1024);
    const replies = [2, 3, 4, 5].map((id) => ask(id, 'tools/call', padding).reply);
    expect(replies.map(({ given }) => (given && 'reason' in given ? given.reason : given))).toEqual([
      undefined,
      undefined,
      undefined,
      'group_busy',
    ]);
    calls.take(1);
    await turn();
    expect(ran).toEqual([2]);
    expect(ask(6, 'tools/call', padding).reply.given).toBeUndefined();
  });

  it('admits all calls if the server tells which request a question is for', () => {
    const { begin, ask } = setUp({ tellsRequests: true });
    begin(1);
    expect(ask(2).admitted).toBe(true);
  });

  it('admits all calls of one user, who get the questions of the newest', () => {
    const { calls, begin, turns } = setUp();
    begin(1);
    const message = readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","id":2,"method":"tools/call"}'));
    expect(turns.admits({ messages: [message], isBatch: false, group: {} }, createFakeReply())).toBe(true);
    expect(calls.size).toBe(1);
  });

  it('admits waiting calls in the order in which they came', async () => {
    const { calls, begin, ask, ran } = setUp();
    begin(1);
    ask(2);
    ask(3);
    calls.take(1);
    await turn();
    expect(ran).toEqual([2]);
    calls.take(2);
    await turn();
    expect(ran).toEqual([2, 3]);
  });

  it('skips a client that has left', async () => {
    const { calls, begin, ask, ran } = setUp();
    begin(1);
    ask(2).reply.leave();
    ask(3);
    calls.take(1);
    await turn();
    expect(ran).toEqual([3]);
  });

  it('[P8] refuses calls that wait too long or meet a full queue; when the session ends, they may go to the next one', () => {
    vi.useFakeTimers();
    const { turns, begin, ask } = setUp({ maxWaitMs: 100 });
    begin(1);
    const first = ask(2);
    for (let id = 3; id < 258; id += 1) expect(ask(id).reply.given).toBeUndefined();
    expect(ask(258).reply.given).toMatchObject({ reason: 'group_busy' });
    vi.advanceTimersByTime(100);
    expect(first.reply.given).toMatchObject({ reason: 'group_busy' });
    const last = ask(4);
    turns.close('unknown_session');
    expect(last.reply.given).toMatchObject({ reason: 'unknown_session' });
    vi.useRealTimers();
  });
});
