import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { faultMessage } from '../../../src/core/protocol/faults.ts';
import { contain, reportFaultsTo } from '../../../src/core/util/boundary.ts';
import { createHttpContext } from '../../support/http-context.ts';
import { alice, createCallLog } from './admission-fixture.ts';

const uuid = '3f2c8f6e-0b8a-4c54-9a51-0a1f0d7c9b10';

describe('the facts of a request', () => {
  it('are read from its head, also after a change of its target', () => {
    const { context } = createHttpContext({
      method: 'POST',
      url: '/mcp?a=b',
      headers: { accept: 'text/event-stream', 'x-request-id': uuid },
    });
    expect([context.method, context.path, context.url]).toEqual(['POST', '/mcp', '/mcp?a=b']);
    expect(context.accepts).toEqual({ json: false, sse: true });
    expect([context.header('accept'), context.header('nothing')]).toEqual(['text/event-stream', undefined]);
    context.incoming.url = '/other';
    expect(context.path).toBe('/other');
  });

  it('[P12] name the request by the id of the log, else by that of a proxy, and by no other text', () => {
    const named = createHttpContext({ headers: { 'x-request-id': uuid } }).context;
    expect(named.requestId).toBe(uuid);
    named.logId = 'of the log';
    expect(named.requestId).toBe('of the log');
    expect(createHttpContext({ headers: { 'x-request-id': 'secret' } }).context.requestId).toBeUndefined();
  });

  it('have no sender before the admission, so that no step runs for nobody', () => {
    const { context } = createHttpContext();
    expect(() => context.sender).toThrow('not admitted');
    context.sender = { identity: alice, principal: alice.principal, forwarded: {} };
    expect(context.sender.principal).toBe(alice.principal);
  });
});

describe('a fault', () => {
  it.each([
    ['store_unavailable', 503, { 'retry-after': '2' }],
    ['method_not_allowed', 405, { allow: 'POST, GET, DELETE' }],
    ['not_json', 400, {}],
  ] as const)('is answered as its entry says: %s', (reason, status, headers) => {
    const { context, response } = createHttpContext();
    context.respondWithFault(reason, 7, { more: 1 });
    const text = faultMessage(reason, 7, { more: 1 });
    expect(context.fault).toBe(reason);
    expect(response()).toMatchObject({ status, text: text.toString() });
    expect(response()?.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      'x-content-type-options': 'nosniff',
      ...headers,
    });
  });

  it('has the time that a server named, in place of that of its entry', () => {
    const { context, response } = createHttpContext();
    context.respondWithFault('server_overloaded', 7, { retryAfterS: 120 });
    expect(response()).toMatchObject({ status: 503, headers: { 'retry-after': '120' } });
  });

  it('has the words of the era that the client names', () => {
    const { context, response } = createHttpContext({ headers: { 'mcp-protocol-version': '2026-07-28' } });
    context.respondWithFault('not_json');
    expect(response()?.text).toBe(faultMessage('not_json', null, undefined, 'modern').toString());
  });

  it('carries the challenge of a refusal', () => {
    const { context, response } = createHttpContext();
    context.refuse({ reason: 'credentials_required', wwwAuthenticate: 'Bearer', id: 'seven' });
    expect(response()).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(JSON.parse(response()?.text ?? '')).toMatchObject({ id: 'seven' });
  });

  it('is reported once, as the end of the calls of the request', () => {
    const calls = createCallLog();
    const { context } = createHttpContext({ method: 'POST', headers: { 'x-request-id': uuid } });
    context.endpoint = { server: { name: 'git' }, calls };
    context.identity = alice;
    context.respondWithFault('not_json');
    expect(() => context.respondWithFault('internal')).toThrow(); // the response has begun
    expect(calls.refusals).toEqual(['not_json']);
    expect(calls.calls).toHaveLength(1);
    expect(calls.calls[0]).toMatchObject({
      origin: { server: 'git', era: 'legacy', principal: alice.principal },
      outcome: { kind: 'fault', reason: 'not_json' },
      requestId: uuid,
    });
  });
});

describe('[E-03] a fault of the gateway', () => {
  let faults: unknown[];
  let restore: () => void;
  beforeEach(() => {
    faults = [];
    restore = reportFaultsTo((_seam, cause) => void faults.push(cause));
  });
  afterEach(() => restore());
  const slip = new TypeError('a slip');
  const throwSlip = (): never => {
    throw slip;
  };

  it.each([
    ['throws', throwSlip],
    ['rejects', async () => throwSlip()],
  ])('in a step that %s ends the request as internal, under the id of its message', async (_, step) => {
    const { context, response } = createHttpContext({ method: 'POST' });
    context.answerId = 'seven';
    context.contain(step);
    await Promise.resolve();
    await Promise.resolve();
    expect(response()?.status).toBe(500);
    expect(JSON.parse(response()?.text ?? '')).toMatchObject({ id: 'seven', error: { data: { reason: 'internal' } } });
    expect([context.hasFailed, context.fault, faults]).toEqual([true, 'internal', [slip]]);
  });

  it('ends the connection if the response has begun', () => {
    const { context } = createHttpContext();
    context.outgoing.writeHead(200).write('begun');
    context.contain(throwSlip);
    expect([context.hasFailed, context.outgoing.destroyed, context.fault]).toEqual([true, true, undefined]);
  });

  it('after the answer changes nothing', () => {
    const { context } = createHttpContext();
    context.outgoing.end('fine');
    contain('request', throwSlip, () => context.fail());
    expect([context.hasFailed, context.outgoing.statusCode]).toEqual([false, 200]);
  });
});
