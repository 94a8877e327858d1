import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { noHeaders } from '../../../../src/core/protocol/http/forwarded-headers.ts';
import { createMessage } from '../../../../src/core/protocol/message/message.ts';
import { lossReason } from '../../../../src/core/session/end-reason.ts';
import { Outbound } from '../../../../src/core/session/outbound/outbound.ts';
import { SessionLog } from '../../../../src/core/session/outbound/session-log.ts';
import { ServerLink } from '../../../../src/core/session/server/server-link.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createFakeAnswer } from '../../../support/fake-answer.ts';
import { createCore } from '../core-fixture.ts';

/** One list in flight, and what was sent for it and answered in its place. */
function createList() {
  const { session } = createCore();
  session.handshake = { protocolVersion: '2025-11-25', capabilities: {} };
  const { calls } = session;
  const request = createMessage({ id: 1, method: 'tools/list' });
  const answer = createFakeAnswer(1);
  const base = { id: 1, method: 'tools/list', progressToken: undefined, taskId: undefined };
  calls.add({ ...base, answer, request, activeAt: 0, startedAt: 0 });
  const happened: string[] = [];
  const server: { takes: ReturnType<ServerLink['send']> } = { takes: 'sent' };
  const sent: string[] = [];
  const link = new ServerLink(session);
  vi.spyOn(link, 'restore').mockReturnValue();
  vi.spyOn(link, 'send').mockImplementation(({ text }) => {
    sent.push(text.toString());
    happened.push('sent again');
    return server.takes;
  });
  const lost = new Outbound(session, link, new SessionLog(session));
  vi.spyOn(lost, 'fail').mockImplementation((call, reason) => {
    calls.retire(call.id);
    happened.push(reason);
  });
  const loseBackend = (undelivered: BackendEnd['undelivered'] = []) =>
    lost.onLost({ reason: 'exited', detail: 'It exited.', undelivered });
  const leaveUnanswered = (reason: Reason = 'server_unreachable', isFinal = false) =>
    lost.onUnanswered([1], reason, isFinal);
  return { session, happened, sent, lost, server, loseBackend, leaveUnanswered };
}

/** Longer than a call whose POST broke waits. */
const waitMs = 1_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('[P3] a list call whose POST breaks just before its backend is lost runs again once at the next one', () => {
  const { happened, leaveUnanswered, loseBackend } = createList();
  leaveUnanswered();
  loseBackend();
  vi.advanceTimersByTime(waitMs);
  expect(happened).toEqual(['sent again']);
});

it('[P3] a list call whose POST breaks is sent again to a surviving backend, and to the next one after a loss', () => {
  const { happened, leaveUnanswered, loseBackend } = createList();
  leaveUnanswered();
  vi.advanceTimersByTime(waitMs);
  expect(happened).toEqual(['sent again']);
  loseBackend();
  expect(happened).toEqual(['sent again', 'sent again']);
});

it('[P3] [P8] a list call runs again only once after a broken POST and once after a loss', () => {
  const first = createList();
  first.leaveUnanswered();
  vi.advanceTimersByTime(waitMs);
  first.leaveUnanswered();
  expect(first.happened).toEqual(['sent again', 'server_unreachable']);

  const second = createList();
  second.loseBackend();
  second.loseBackend();
  expect(second.happened).toEqual(['sent again', 'server_exited']);

  const third = createList();
  third.loseBackend();
  third.leaveUnanswered();
  expect(third.happened).toEqual(['sent again', 'server_unreachable']);
});

it('[P3] [P7] a list call that has run is not reported as unsent if there is no room to send it again', () => {
  const loss = createList();
  loss.server.takes = 'full';
  loss.loseBackend();
  expect(loss.happened).toEqual(['sent again', 'server_exited']);

  const broken = createList();
  broken.leaveUnanswered();
  vi.advanceTimersByTime(waitMs);
  broken.leaveUnanswered('server_busy');
  expect(broken.happened).toEqual(['sent again', 'server_unreachable']);

  const fresh = createList();
  fresh.leaveUnanswered('server_busy');
  expect(fresh.happened).toEqual(['server_busy']);
});

it('[C-14] messages that a lost backend did not take are all sent again, including the client’s progress', () => {
  const texts = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":"t"}}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}',
    '{"jsonrpc":"2.0","id":9,"result":{}}',
  ];
  const { sent, loseBackend } = createList();
  // The reader recognises progress by its bytes once it has met the same form before.
  loseBackend([...texts, ...texts.slice(1, 2)].map((text) => ({ message: asMessage(text), headers: noHeaders })));
  expect(sent).toEqual([texts[0], texts[1], texts[1]]); // an answer is for the backend that asked
});

it('[J-03] a list call that its backend has run again or waited for does not run again, so that the times do not add up', () => {
  const { happened, leaveUnanswered } = createList();
  leaveUnanswered('server_unreachable', true);
  vi.advanceTimersByTime(waitMs);
  expect(happened).toEqual(['server_unreachable']);
});

it.each([
  ['line_too_long', 'line_too_long'],
  ['memory_limit', 'memory_limit'],
  ['exited', 'server_exited'],
  ['failed', 'server_exited'],
] as const)('the end of a backend by %s is %s for its calls', (reason, told) => {
  expect(lossReason({ reason, detail: '' })).toBe(told);
});

it('[P7] a call that waited for the store in vain has not run, unless it was sent before', () => {
  for (const reruns of [false, true]) {
    const { session, lost, happened } = createList();
    const call = session.calls.get(1);
    if (call === undefined) throw new Error('no call');
    if (reruns) call.rerunAfter = 'loss';
    lost.onUnsent(createMessage({ id: 1, method: 'tools/list' }), 'store_unavailable');
    expect(happened).toEqual([reruns ? 'server_unreachable' : 'store_unavailable']);
  }
});
