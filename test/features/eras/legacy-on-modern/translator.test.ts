import { describe, expect, it } from 'vitest';
import { createTranslation } from './fake-server-side.ts';

const key = (name: string) => `io.modelcontextprotocol/${name}`;
const envelope = {
  [key('protocolVersion')]: '2026-07-28',
  [key('clientInfo')]: { name: 'client', version: '1' },
  [key('clientCapabilities')]: { roots: {} },
};
const subscription = { _meta: { [key('subscriptionId')]: 0 } };

describe('a legacy session that begins at a modern server', () => {
  it('[R7.06b] gets its initialize answered from server/discover', async () => {
    const translation = createTranslation();
    translation.send({ id: 'init', method: 'initialize', params: { protocolVersion: '2025-06-18' } }, { a: 'b' });
    expect(translation.last).toMatchObject({ request: { method: 'server/discover' }, headers: { a: 'b' } });
    translation.last.result({ capabilities: { tools: {} }, instructions: 'i' });
    expect(await translation.heard()).toEqual([
      {
        of: ['init'],
        jsonrpc: '2.0',
        id: 'init',
        result: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'configured', version: 'unknown' },
          instructions: 'i',
        },
      },
    ]);
  });

  it('ends after the reason is reported if the server cannot answer server/discover', async () => {
    const translation = createTranslation();
    translation.request('init', 'initialize');
    translation.last.answer.fault('server_start_failed');
    expect(await translation.heard()).toEqual([{ ids: ['init'], reason: 'server_start_failed' }]);
    await translation.heard();
    expect(translation.ends).toMatchObject([{ reason: 'failed' }]);
    expect(translation.request(1, 'ping')).toBe('ended');
  });
});

describe('a request of a legacy client to a modern server', () => {
  it('[P1] gets the envelope and nothing else, and goes with its headers', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'tools/call', { name: 'x', _meta: { progressToken: 'p' } }, { authorization: 'a' });
    expect(translation.last.request.params).toEqual({ name: 'x', _meta: { ...envelope, progressToken: 'p' } });
    expect(translation.last.headers).toEqual({ authorization: 'a' });
    translation.last.notify('notifications/progress', { progressToken: 'p', progress: 1 });
    translation.last.result({ content: [] });
    expect(await translation.heard()).toMatchObject([
      { of: [1], method: 'notifications/progress' },
      { of: [1], id: 1, result: { content: [] } },
    ]);
  });

  it('[J-02] gets the envelope also if it is a vendor notification', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.send({ method: 'notifications/acme/hello', params: { n: 1, _meta: { a: 1 } } });
    translation.send({ method: 'notifications/acme/hello' });
    expect(translation.notified.map(({ params }) => params)).toEqual([
      { n: 1, _meta: { ...envelope, a: 1 } },
      { _meta: envelope },
    ]);
  });

  it('[J-07] is cancelled with the reason that the client gives', async () => {
    const translation = createTranslation();
    await translation.open();
    for (const [id, reason] of [
      [1, 'enough'],
      [2, undefined],
      [3, 7],
    ]) {
      translation.request(id, 'tools/call', { name: 'x' });
      translation.send({ method: 'notifications/cancelled', params: { requestId: id, reason } });
    }
    expect(translation.asked.map(({ cancelledFor }) => cancelledFor)).toEqual(['enough', undefined, undefined]);
  });

  it('carries the log level that the client has set, and none before', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'tools/call');
    expect(translation.last).toMatchObject({ logLevel: undefined, request: { params: { _meta: envelope } } });
    translation.request(2, 'logging/setLevel', { level: 'warning' });
    translation.request(3, 'logging/setLevel', { level: 'loud' });
    translation.request(4, 'tools/call');
    expect(translation.last.logLevel).toBe('warning');
    expect(translation.last.request.params._meta[key('logLevel')]).toBe('warning');
    expect(await translation.heard()).toEqual([
      { of: [2], jsonrpc: '2.0', id: 2, result: {} },
      { ids: [3], reason: 'bad_log_level' },
    ]);
  });

  it('that the modern era does not have is answered by the gateway or refused', async () => {
    const translation = createTranslation();
    await translation.open({ tools: {} });
    translation.request(1, 'ping');
    for (const method of ['tasks/get', 'server/discover', 'subscriptions/listen']) translation.request(2, method);
    expect(await translation.heard()).toEqual([
      { of: [1], jsonrpc: '2.0', id: 1, result: {} },
      ...[2, 2, 2].map((id) => ({ ids: [id], reason: 'method_of_other_era' })),
    ]);
    expect(translation.asked).toEqual([]);
    // What the server does not declare is the server's to refuse.
    for (const method of ['logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'no/such']) {
      translation.request(3, method);
      expect(translation.last.request.method).toBe(method);
    }
  });

  it('ends with the reason why there is no answer', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'tools/call');
    translation.last.answer.fault('server_exited');
    expect(await translation.heard()).toEqual([{ ids: [1], reason: 'server_exited' }]);
    expect(translation.ends).toEqual([]);
  });

  it('that finds the server no longer modern ends the backend, so that the next one can be legacy', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'tools/call');
    translation.last.answer.fault('server_not_modern');
    expect(await translation.heard()).toEqual([{ ids: [1], reason: 'server_not_modern' }]);
    await translation.heard();
    expect(translation.ends).toMatchObject([{ reason: 'failed' }]);
  });

  it('is cancelled at the server, which gets no cancellation of unknown requests', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'tools/call');
    translation.request('1', 'tools/call');
    translation.send({ method: 'notifications/cancelled', params: { requestId: '1' } });
    translation.send({ method: 'notifications/cancelled', params: { requestId: 7 } });
    expect(translation.asked.map(({ isCancelled }) => isCancelled)).toEqual([false, true]);
    translation.last.result({});
    expect(await translation.heard()).toEqual([]);
    expect(translation.notified).toEqual([]);
  });

  it('[P8] is refused if requests that wait for a retry hold too many bytes', async () => {
    const translation = createTranslation(1_000);
    await translation.open();
    expect(translation.request(1, 'tools/call', { text: 'x'.repeat(400) })).toBe('sent');
    expect(translation.request(2, 'tools/call', { text: 'x'.repeat(400) })).toBe('full');
    translation.last.result({});
    expect(translation.request(2, 'tools/call', { text: 'x'.repeat(400) })).toBe('sent');
  });
});

describe('a notification of a legacy client to a modern server', () => {
  it('passes unless the modern era does not have it', async () => {
    const translation = createTranslation();
    await translation.open({});
    for (const name of ['initialized', 'roots/list_changed', 'progress', 'cancelled', 'x']) {
      expect(translation.send({ method: `notifications/${name}`, params: {} })).toBe('sent');
    }
    const params = { _meta: envelope };
    expect(translation.notified).toEqual([{ jsonrpc: '2.0', method: 'notifications/x', params }]);
    translation.refuseNotifications('server_busy');
    expect(translation.send({ method: 'notifications/x' })).toBe('full');
  });
});

describe('a change at a modern server', () => {
  it('of the lists that the server declares is subscribed to once the legacy client is ready', async () => {
    const translation = createTranslation();
    await translation.open();
    expect(translation.asked).toEqual([]);
    translation.send({ method: 'notifications/initialized' });
    await translation.heard();
    expect(translation.last).toMatchObject({
      headers: { newest: '1' },
      request: {
        method: 'subscriptions/listen',
        params: { notifications: { toolsListChanged: true, resourcesListChanged: true }, _meta: envelope },
      },
    });
    expect(translation.last.request.params._meta).toEqual(envelope);
    translation.last.notify('notifications/subscriptions/acknowledged', { ...subscription, notifications: {} });
    translation.last.notify('notifications/tools/list_changed', subscription);
    expect(await translation.heard()).toEqual([
      { of: [], jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: {} },
    ]);
  });

  it('of a resource reaches the legacy client once the server has acknowledged', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'resources/subscribe', { uri: 'test://x' });
    expect(await translation.heard()).toEqual([]);
    const notifications = { resourceSubscriptions: ['test://x'] };
    expect(translation.last.request.params.notifications).toEqual(notifications);
    translation.last.notify('notifications/subscriptions/acknowledged', { ...subscription, notifications });
    translation.last.notify('notifications/resources/updated', { uri: 'test://x', ...subscription });
    translation.request(2, 'resources/unsubscribe', { uri: 'test://x' });
    expect(await translation.heard()).toEqual([
      { of: [1], jsonrpc: '2.0', id: 1, result: {} },
      { of: [], jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'test://x' } },
      { of: [2], jsonrpc: '2.0', id: 2, result: {} },
    ]);
    expect(translation.last.isCancelled).toBe(true);
  });

  it('[P2] is subscribed to before a call is sent that may cause it', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.send({ method: 'notifications/initialized' });
    translation.request(1, 'resources/subscribe', { uri: 'test://x' });
    translation.request(2, 'tools/call');
    expect(translation.asked.map(({ request }) => request.params.notifications)).toEqual([
      { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ['test://x'] },
      undefined,
    ]);
  });

  it('of something that is no resource cannot be subscribed to', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.request(1, 'resources/subscribe', { uri: 7 });
    translation.request(2, 'resources/unsubscribe');
    translation.request(3, 'resources/subscribe', { uri: 'test://x' });
    expect(await translation.heard()).toEqual([
      { ids: [1], reason: 'bad_uri' },
      { ids: [2], reason: 'bad_uri' },
    ]);
    translation.last.error({ code: -32602, message: 'no such' });
    expect(await translation.heard()).toEqual([
      { of: [3], jsonrpc: '2.0', id: 3, error: { code: -32602, message: 'no such' } },
    ]);
  });
});

describe('a paused legacy session at a modern server', () => {
  it('gets everything in order when it resumes', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.translator.pause();
    translation.request(1, 'tools/call');
    translation.last.notify('notifications/message');
    translation.last.result({});
    translation.request(2, 'ping');
    expect(await translation.heard()).toEqual([]);
    translation.translator.resume();
    expect(await translation.heard()).toMatchObject([{ of: [1] }, { of: [1], id: 1 }, { of: [2], id: 2 }]);
    expect(translation.portions.slice(-2)).toEqual([2, 1]);
  });

  it('[P8] loses messages beyond 4 MiB, and its calls end with that reason', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.translator.pause();
    translation.request(1, 'tools/call');
    const text = 'x'.repeat(1024 * 1024);
    const taken = Array.from({ length: 6 }, () => translation.last.notify('notifications/message', { text }));
    expect(taken).toEqual([true, true, true, true, false, false]);
    translation.last.result({});
    translation.translator.resume();
    const told = await translation.heard();
    expect(told).toHaveLength(5);
    expect(told.at(-1)).toEqual({ ids: [1], reason: 'slow_reader' });
  });
});

describe('the end of a legacy session at a modern server', () => {
  it('cancels its requests at the server, and delivers nothing more', async () => {
    const translation = createTranslation();
    await translation.open();
    translation.send({ method: 'notifications/initialized' });
    translation.request(1, 'tools/call');
    translation.request(2, 'ping');
    await translation.translator.close();
    await translation.translator.close();
    expect(translation.asked.map(({ isCancelled }) => isCancelled)).toEqual([true, true]);
    translation.last.result({});
    expect(await translation.heard()).toEqual([]);
    expect(translation.ends).toMatchObject([{ reason: 'closed' }]);
  });
});
