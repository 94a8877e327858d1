import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import type { Endpoint } from '../../../../src/core/http/http-context.ts';
import { logRequests, requestIdFor } from '../../../../src/core/ops/log/request-log.ts';
import { keyFromId } from '../../../../src/core/session/session-key.ts';
import { asMessage } from '../../../support/as-message.ts';
import { createHttpContext, type FakeRequest } from '../../../support/http-context.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('the id of a request', () => {
  test.each(['3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10', '3F2C8F6E0B8A4C549A510A1F0D7C9B10'])(
    '%s is the one of a proxy',
    (given) => {
      expect(requestIdFor(given)).toBe(given);
    },
  );

  test.each([
    undefined,
    '',
    'Rn8dna6JFRzWPNkcddw-D4umZHWxWCDnQ3k952-nHXA', // the form of a session id
    '3f2c8f6e0b8a4c549a510a1f0d7c9b1',
    '3f2c8f6e0b8a4c549a510a1f0d7c9b100',
    '3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10\n',
    ['3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10', 'x'],
  ])('[P12] for %j there is a new one', (given) => {
    const id = requestIdFor(given);
    expect(id).toMatch(uuid);
    expect(id).not.toBe(given);
    expect(requestIdFor(given)).not.toBe(id);
  });
});

describe('the line of a request', () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  const spanOf = (id: string): string => `00-${id}-b7ad6b7169203331-01`;
  const call = asMessage({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } });

  /** Sends a request through a log, and returns its line. */
  function log(endpoint: Endpoint, request: FakeRequest = {}, level = 'debug') {
    const lines: Record<string, unknown>[] = [];
    const logger = pino({ base: null, level }, { write: (line: string) => void lines.push(JSON.parse(line)) });
    const { context, response } = createHttpContext(request);
    const send = vi.fn(endpoint);
    logRequests(send, { logger, paths: new Set(['/mcp']), from: 'playground' })(context);
    context.outgoing.emit('close');
    expect(send).toHaveBeenCalledTimes(1);
    return { line: lines[0], lines, headers: response()?.headers, context };
  }

  test('has what the steps have found out, in one order', () => {
    const { line, headers } = log(
      (context) => {
        context.endpoint = { server: { name: 'git' } };
        context.messages = [call];
        context.sessionKey = 'its-session-key';
        context.respondWithFault('quota_bytes');
      },
      { method: 'POST', url: '/mcp?x=1', headers: { traceparent: spanOf(traceId) } },
    );
    expect(Object.keys(line ?? {}).join()).toBe(
      'level,time,from,requestId,server,call,name,traceId,session,method,path,status,reason,durationMs,msg',
    );
    expect(line).toMatchObject({
      from: 'playground',
      requestId: headers?.['x-request-id'],
      server: 'git',
      call: 'tools/call',
      name: 'echo',
      traceId,
      session: 'its-sess',
      method: 'POST',
      path: '/mcp',
      status: 429,
      reason: 'quota_bytes',
      msg: 'request',
    });
  });

  test('names the trace that was begun for the message, and the session that was opened', () => {
    const traced = asMessage({
      jsonrpc: '2.0',
      id: 1,
      method: 'ping',
      params: { _meta: { traceparent: spanOf(traceId) } },
    });
    const { line } = log((context) => {
      context.messages = [call];
      context.tracedMessages = [traced];
      context.outgoing.setHeader('mcp-session-id', 'opened');
      context.outgoing.end();
    });
    expect(line).toMatchObject({ traceId, session: keyFromId('opened').slice(0, 8), call: 'ping' });
  });

  test('[P12] names no path that it does not know, and says that a client has left', () => {
    const { line } = log(() => undefined, { url: '/secret' });
    expect(line).toMatchObject({ left: true });
    expect(line).not.toHaveProperty('path');
    expect(JSON.stringify(line)).not.toContain('secret');
  });

  test('is not made above debug, and the client gets no id then', () => {
    const { lines, headers, context } = log(({ outgoing }) => void outgoing.end(), {}, 'info');
    expect([lines, context.logId]).toEqual([[], undefined]);
    expect(headers).not.toHaveProperty('x-request-id');
  });
});
