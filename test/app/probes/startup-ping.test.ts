import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createStartupPing, pingAfterMs, slowMs } from '../../../src/app/probes/startup-ping.ts';
import type { BackendEnd } from '../../../src/core/backend/backend.ts';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { createFakeServer, type FakeServer } from '../../support/fake-backend.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const startTimeoutMs = 30_000;
const hello = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } };

function createFixture({ era = 'auto', limitMs = startTimeoutMs }: { era?: 'auto' | 'modern'; limitMs?: number } = {}) {
  const told: string[] = [];
  const heard: unknown[] = [];
  const question = createStartupPing({
    era,
    startTimeoutMs: limitMs,
    onAnswered: (wasSlow) => void told.push(wasSlow ? 'answered late' : 'answered'),
    onSlow: () => void told.push('slow'),
    onSilent: (method) => void told.push(`silent on ${method}`),
  });
  const server: FakeServer = createFakeServer();
  const open = () =>
    linkBackends(server.open, [question.intercept])({
      onMessages: (messages) => heard.push(...messages.map(({ text }) => JSON.parse(text.toString()))),
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: ({ reason }: BackendEnd) => heard.push({ reason, wasOpen: question.isOpen }),
    });
  open();
  question.begin();
  return { question, server, told, heard, open, sent: () => server.opened[0]?.sent.items ?? [] };
}

describe('the first question', () => {
  it('is a ping, soon after the start, and its answer is nobody else’s', () => {
    const { server, told, heard, sent } = createFixture();
    vi.advanceTimersByTime(pingAfterMs - 1);
    expect(sent()).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(sent()).toMatchObject([{ method: 'ping' }]);
    const [{ id }] = sent() as [{ id: string }];
    server.backend.says(hello, { jsonrpc: '2.0', id, result: {} }, hello);
    vi.advanceTimersByTime(startTimeoutMs);
    expect([told, heard]).toEqual([['answered'], [hello, hello]]);
  });

  it.each([
    ['an error', (id: unknown) => ({ id, error: { code: -32601, message: 'no' } })],
    ['an error to nobody knows what', () => ({ id: null, error: { code: -32600, message: 'no' } })],
  ])('is answered by %s as well', (_, answer) => {
    const { server, told, heard, sent } = createFixture();
    vi.advanceTimersByTime(pingAfterMs);
    const [{ id }] = sent() as [{ id: string }];
    server.backend.says({ jsonrpc: '2.0', ...answer(id) });
    expect([told, heard]).toEqual([['answered'], []]);
  });

  it('of a modern server has an envelope', () => {
    const { sent } = createFixture({ era: 'modern' });
    vi.advanceTimersByTime(pingAfterMs);
    expect(sent()).toMatchObject([{ method: 'server/discover', params: { _meta: expect.any(Object) } }]);
  });

  it('is mentioned while it is open, and only reported after the limit for the start', () => {
    const { server, told, sent } = createFixture();
    vi.advanceTimersByTime(pingAfterMs + slowMs - 1);
    expect(told).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(told).toEqual(['slow']);
    vi.advanceTimersByTime(startTimeoutMs - pingAfterMs - slowMs - 1);
    expect(told).toEqual(['slow']);
    vi.advanceTimersByTime(60_000);
    expect(told).toEqual(['slow', 'silent on ping']);
    const [{ id }] = sent() as [{ id: string }];
    server.backend.says({ jsonrpc: '2.0', id, result: {} });
    expect(told).toEqual(['slow', 'silent on ping', 'answered late']);
  });

  it('with a short limit is only reported', () => {
    const { told } = createFixture({ limitMs: pingAfterMs + slowMs });
    vi.advanceTimersByTime(60_000);
    expect(told).toEqual(['silent on ping']);
  });

  it('of a slow server is answered late, and not reported', () => {
    const { server, told, sent } = createFixture();
    vi.advanceTimersByTime(pingAfterMs + slowMs);
    const [{ id }] = sent() as [{ id: string }];
    server.backend.says({ jsonrpc: '2.0', id, result: {} });
    vi.advanceTimersByTime(60_000);
    expect(told).toEqual(['slow', 'answered late']);
  });

  it('is not asked of a process that a client has, and one that has it later does not hear the answer', () => {
    const early = createFixture();
    early.question.end();
    vi.advanceTimersByTime(60_000);
    expect([early.sent(), early.told]).toEqual([[], []]);

    const { question, server, told, heard, sent } = createFixture();
    vi.advanceTimersByTime(pingAfterMs);
    question.end();
    vi.advanceTimersByTime(60_000);
    expect(told).toEqual([]);
    const [{ id }] = sent() as [{ id: string }];
    server.backend.says({ jsonrpc: '2.0', id, result: {} });
    expect(heard).toEqual([]);
  });

  it('is open until the end is told, and is asked of no other process', () => {
    const { question, server, told, heard, open } = createFixture();
    vi.advanceTimersByTime(pingAfterMs);
    server.backend.ends();
    expect(heard).toEqual([{ reason: 'exited', wasOpen: true }]);
    expect(question.isOpen).toBe(false);
    open();
    vi.advanceTimersByTime(60_000);
    expect([server.backend.sent.items, told]).toEqual([[], []]);
  });
});
