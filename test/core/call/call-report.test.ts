import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CallEvent } from '../../../src/core/call/call-events.ts';
import { CallReport } from '../../../src/core/call/call-report.ts';
import { readMessage } from '../../support/fake-backend.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const response = readMessage({ jsonrpc: '2.0', id: 1, result: {} });

/** A call that somebody is told of. */
function open() {
  const events: CallEvent[] = [];
  const emit = (event: CallEvent): void => void events.push(event);
  const call = new CallReport({ emit, wantsNames: false }, { server: 's', era: 'legacy', principal: undefined });
  const pass = (ms: number) => void vi.advanceTimersByTime(ms);
  const times = () => {
    const [event] = events;
    if (event?.type !== 'call-ended') throw new Error('the call has not ended');
    const { durationMs, serverMs, waitedMs } = event;
    return { durationMs, serverMs, waitedMs };
  };
  return { call, pass, times };
}

describe('the outcome of a call', () => {
  it.each([
    ['tools/call', { result: { isError: true } }, { kind: 'tool_error' }],
    ['tools/call', { result: { isError: false } }, { kind: 'ok' }],
    ['prompts/get', { result: { isError: true } }, { kind: 'ok' }],
    ['tools/call', { error: { code: -32602, message: 'x' } }, { kind: 'error', code: -32602 }],
  ])('%s with %j is %j, told once', (method, answer, outcome) => {
    const events: CallEvent[] = [];
    const request = { method, name: 'x', text: Buffer.alloc(7) };
    const origin = { server: 's', era: 'legacy', principal: undefined } as const;
    const call = new CallReport({ emit: (event) => void events.push(event), wantsNames: true }, origin, request);
    const message = readMessage({ jsonrpc: '2.0', id: 1, ...answer });
    call.answered(message);
    call.left();
    expect(events).toMatchObject([{ type: 'call-ended', method, outcome, bytesIn: 7, bytesOut: message.text.length }]);
  });
});

it('a call whose client has a task says so', () => {
  const events: CallEvent[] = [];
  const origin = { server: 's', era: 'modern', principal: undefined } as const;
  const call = new CallReport({ emit: (event) => void events.push(event), wantsNames: false }, origin);
  call.becameTask(response);
  call.answered(response);
  expect(events).toMatchObject([{ type: 'call-ended', outcome: { kind: 'ok' }, isTask: true }]);
});

it.each([
  ['modern', true, 'editor 1'],
  ['modern', false, undefined],
  ['legacy', true, undefined],
] as const)('a %s call, with names: %s, has the client %s', (era, wantsNames, client) => {
  const events: CallEvent[] = [];
  const _meta = { 'io.modelcontextprotocol/clientInfo': { name: 'editor', version: '1' } };
  const request = readMessage({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', _meta } });
  const origin = { server: 's', era, principal: undefined };
  new CallReport({ emit: (event) => void events.push(event), wantsNames }, origin, request).answered(response);
  expect(events).toMatchObject([{ type: 'call-ended', client }]);
});

describe('the time of a call', () => {
  it('is without waits: of the server until its response is read, of the gateway before and after', () => {
    const { call, pass, times } = open();
    pass(1);
    call.sent();
    pass(20);
    call.responseReceived();
    pass(2);
    call.answered(response);
    expect(times()).toEqual({ durationMs: 23, serverMs: 20, waitedMs: 0 });
  });

  it('is not of the server while it waits for its client, however many questions are open', () => {
    const { call, pass, times } = open();
    call.sent();
    pass(10);
    call.waitsForClient();
    pass(100);
    call.waitsForClient();
    pass(100);
    call.settled();
    pass(100);
    call.settled();
    pass(10);
    call.waitsForClient();
    pass(1_000);
    call.settled();
    pass(10);
    call.answered(response);
    expect(times()).toEqual({ durationMs: 1_330, serverMs: 30, waitedMs: 1_300 });
  });

  it('is not of the server, nor of the gateway, while the server is being started, before or after the hand-over', () => {
    const { call, pass, times } = open();
    pass(1);
    call.awaitsStart();
    pass(500);
    call.started();
    call.sent();
    pass(10);
    call.awaitsStart(); // it was lost
    call.awaitsStart();
    pass(600);
    call.started();
    call.started();
    pass(10);
    call.answered(response);
    expect(times()).toEqual({ durationMs: 1_121, serverMs: 20, waitedMs: 1_100 });
  });

  it('has no wait behind the response: who answers with a question open does not wait for it', () => {
    const { call, pass, times } = open();
    call.sent();
    call.waitsForClient();
    pass(50);
    call.responseReceived();
    pass(5);
    call.settled();
    call.answered(response);
    expect(times()).toEqual({ durationMs: 55, serverMs: 0, waitedMs: 50 });
  });

  it('of one whose client leaves in a wait has the wait so far', () => {
    const { call, pass, times } = open();
    call.sent();
    pass(7);
    call.awaitsStart();
    pass(30);
    call.left();
    expect(times()).toEqual({ durationMs: 37, serverMs: 7, waitedMs: 30 });
  });
});
