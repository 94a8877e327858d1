import { describe, expect, test } from 'vitest';
import { type GatewayOptions, root } from '../support/gateway.ts';
import { initialize, open, post } from '../support/http-client.ts';
import { type LocalGateway, sharedLocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import {
  callModern,
  metaKeys,
  modernBody,
  modernHeaders,
  modernRevision,
  postModern,
} from '../support/modern-client.ts';
import { connectModernSdk } from '../support/modern-sdk-client.ts';
import { connectV1 } from '../support/sdk-clients.ts';
import { waitFor } from '../support/wait-for.ts';
import { type Handler, initializeBody, startBehind } from './hostile-server.ts';

/** What foreign suites, real servers and the SDK's own tests found where the eras meet. */

const foreign = (era: 'legacy' | 'modern'): readonly string[] => [
  process.execPath,
  `${root}test/fixtures/children/foreign-server.mjs`,
  era,
];
const legacyOptions: GatewayOptions = { command: foreign('legacy'), args: ['--era', 'legacy', '--share', 'all'] };
const modernOptions: GatewayOptions = { command: foreign('modern'), args: ['--era', 'modern'] };
const startLegacy = (): Promise<LocalGateway> => startLocalGateway(legacyOptions);
const startModern = (): Promise<LocalGateway> => startLocalGateway(modernOptions);
const pinned = { pin: modernRevision };
const notifyModern = async (url: string, method: string, params: object) => {
  const { id: _, ...body } = modernBody(method, params) as { id: unknown };
  return (await open(url, { headers: modernHeaders(method), body })).answer();
};
const textOf = ({ json }: Awaited<ReturnType<typeof callModern>>): string => json.result.content[0].text;

describe.each([
  ['legacy', legacyOptions],
  ['modern', modernOptions],
] as const)('an official client of 2026-07-28 at a %s server', (_, options) => {
  const shared = sharedLocalGateway(options);

  test('[M-03] reads the error -32601 of a tool, prompt or resource that there is not', async () => {
    const gateway = await shared();
    await using sdk = await connectModernSdk(gateway.url, pinned);
    const isMissing = { code: -32601, message: expect.stringContaining('Not found here') };
    await expect(sdk.client.callTool({ name: 'none' })).rejects.toMatchObject(isMissing);
    await expect(sdk.client.getPrompt({ name: 'none' })).rejects.toMatchObject(isMissing);
    await expect(sdk.client.readResource({ uri: 'acme://none' })).rejects.toMatchObject(isMissing);
    expect((await postModern(gateway.url, 'no/such')).status).toBe(404);
  });

  test('[S-06] is told at once that a filter names too many resources', async () => {
    const gateway = await shared();
    const resourceSubscriptions = Array.from({ length: 501 }, (_, index) => `file:///${index}`);
    const params = { notifications: { resourceSubscriptions } };
    const { status, json } = await postModern(gateway.url, 'subscriptions/listen', params);
    expect([status, json.error.data.reason]).toEqual([400, 'filter_too_large']);
  });

  test('[M-02] is told at once that subscriptions/listen needs notifications', async () => {
    const gateway = await shared();
    for (const params of [{}, { notifications: [] }, { notifications: 'all' }]) {
      const { status, json } = await postModern(gateway.url, 'subscriptions/listen', params);
      expect([status, json.error.code, json.error.data.reason]).toEqual([200, -32602, 'bad_filter']);
    }
  });
});

test('[M-01] [R3.04] what is read after a round of input says that it is not to be kept, and the official client takes it', async () => {
  await using gateway = await startLegacy();
  await using sdk = await connectModernSdk(gateway.url, pinned);
  const hints = { ttlMs: 0, cacheScope: 'private' };
  const read = await sdk.client.readResource({ uri: 'acme://asks' });
  expect(read).toMatchObject({ contents: [{ text: 'asked' }], ...hints });
  expect(await sdk.client.getPrompt({ name: 'asks' })).toMatchObject({ messages: [{ role: 'user' }], ...hints });
  expect(sdk.questions.items).toHaveLength(2);
});

test('[J-01] a request of a modern server ends with -32601 at the server, and its call goes on', async () => {
  await using gateway = await startModern();
  for (let n = 0; n < 2; n++) {
    expect(JSON.parse(textOf(await callModern(gateway.url, 'ask'))).error.code).toBe(-32601);
  }
  const told = gateway.logs().filter(({ msg }) => String(msg).includes('sends requests to its clients'));
  expect(told).toHaveLength(1);
});

test('[J-06] the message that an SDK shows names the header, and the versions that are served', async () => {
  await using gateway = await startModern();
  const named = await callModern(gateway.url, 'heard', {}, { headers: { 'Mcp-Name': 'another' } });
  expect(named.json.error.message).toBe('Header mismatch: Mcp-Name differs from the body.');
  const later = { [metaKeys.protocolVersion]: '2027-01-01' };
  const headers = { 'MCP-Protocol-Version': '2027-01-01' };
  const unknown = await postModern(gateway.url, 'tools/list', {}, { headers, meta: later });
  expect(unknown.json.error.message).toContain('Supported: 2026-07-28.');
});

const hello = { method: 'notifications/acme/hello' };

describe('[J-02] notifications of vendors', () => {
  test.each([
    ['legacy', startLegacy],
    ['modern', startModern],
  ] as const)('of a %s server reach the only call in flight, and else nobody', async (_, start) => {
    await using gateway = await start();
    await using legacy = await connectV1(gateway.url);
    await using modern = await connectModernSdk(gateway.url, pinned);
    for (const client of [legacy, modern]) {
      expect(await client.callTool('vendor')).toBe('said');
      const told = client.notifications.items.filter(({ method }) => method === hello.method);
      expect(told).toMatchObject([{ params: { n: 1 } }, { params: { n: 2 } }]);
    }
    // Two at once at a process that both share: it cannot be known whose the notifications are.
    const before = modern.notifications.items.length;
    const slow = modern.callTool('slow');
    await postModern(gateway.url, 'tools/call', { name: 'vendor', arguments: {} });
    await slow;
    expect(modern.notifications.items).toHaveLength(before);
  });

  test.each([
    ['legacy', startLegacy],
    ['modern', startModern],
  ] as const)('of a modern client reach a %s server', async (_, start) => {
    await using gateway = await start();
    await callModern(gateway.url, 'heard');
    expect((await notifyModern(gateway.url, 'notifications/acme/hello', { n: 1 })).status).toBe(202);
    const heard = () => callModern(gateway.url, 'heard').then((answer) => JSON.parse(textOf(answer)));
    await waitFor(async () => (await heard()).some(({ method }: { method: string }) => method === hello.method), {
      what: 'the notification',
    });
    const [told] = (await heard()).filter(({ method }: { method: string }) => method === hello.method);
    expect(told.params.n).toBe(1);
    expect(told.params._meta !== undefined).toBe(start === startModern);
  });

  test('of a modern client to a modern server that nobody has used yet wait for its start', async () => {
    await using gateway = await startLocalGateway({ command: foreign('modern') });
    expect((await notifyModern(gateway.url, 'notifications/acme/hello', { n: 1 })).status).toBe(202);
    expect(JSON.parse(textOf(await callModern(gateway.url, 'heard')))).toMatchObject([hello]);
  });

  test('of a modern client to a server without a process of its own are counted', async () => {
    await using gateway = await startLocalGateway({
      ...{ command: foreign('legacy'), args: ['--era', 'legacy', '--log-level', 'debug'] },
    });
    expect((await notifyModern(gateway.url, 'notifications/acme/hello', {})).status).toBe(202);
    await waitFor(() => gateway.logs().some(({ msg, what }) => msg === 'message dropped' && what === 'unplaced'));
  });

  test('of a legacy client reach a modern server, with an envelope', async () => {
    await using gateway = await startModern();
    const legacy = await initialize(gateway.url);
    expect((await legacy.notify('notifications/acme/hello', { n: 1 })).status).toBe(202);
    const { content } = await legacy.callTool('heard');
    const heard = JSON.parse(content[0].text);
    expect(heard).toMatchObject([
      { ...hello, params: { n: 1, _meta: { [metaKeys.protocolVersion]: modernRevision } } },
    ]);
  });
});

test('[J-07] the reason for a cancellation of a legacy client arrives at a modern server as it was sent', async () => {
  await using gateway = await startModern();
  await using legacy = await connectV1(gateway.url);
  const controller = new AbortController();
  const call = legacy.callTool('hang', {}, { signal: controller.signal });
  call.catch(() => undefined);
  await legacy.callTool('heard');
  controller.abort('The user pressed stop');
  await expect(call).rejects.toThrow();
  await waitFor(async () => JSON.parse(await legacy.callTool('heard')).length > 0, { what: 'the cancellation' });
  expect(JSON.parse(await legacy.callTool('heard'))).toMatchObject([
    { method: 'notifications/cancelled', params: { reason: expect.stringContaining('The user pressed stop') } },
  ]);
});

test.each([
  ['http', 401],
  ['http', 403],
  ['sse', 401],
] as const)(
  '[J-08] a server on %s that answers %i refuses credentials, which asks no client for credentials of the gateway',
  async (transport, status) => {
    const refuse: Handler = (_, response) => void response.writeHead(status, { 'www-authenticate': 'Bearer' }).end();
    const { url } = await startBehind(transport, refuse, refuse);
    const answers = [await post(url, initializeBody), await callModern(url, 'any')];
    for (const answer of answers) {
      expect([answer.status, answer.json.error.data.reason]).toEqual([502, 'server_unauthorized']);
      expect(answer.json.error.message).toContain('refused access');
      expect(answer.headers['www-authenticate']).toBeUndefined();
    }
  },
);

describe.each([
  ['one process for all', ['--share', 'all']],
  ['a process for each request', ['--share', 'request']],
] as const)('[J-04] mirrored parameters at a legacy server with %s', (_, args) => {
  test('must say what the body says', async () => {
    await using gateway = await startLocalGateway({ command: foreign('legacy'), args: ['--era', 'legacy', ...args] });
    const call = (header?: string) =>
      callModern(gateway.url, 'region', { region: 'eu' }, { headers: { 'Mcp-Param-Region': header } });
    const wrong = { status: 400, json: { error: { code: -32020, data: { header: 'Mcp-Param-Region' } } } };
    expect(await call('us')).toMatchObject(wrong);
    expect(textOf(await call('eu'))).toBe('in eu');
    await postModern(gateway.url, 'tools/list');
    expect(await call()).toMatchObject({ ...wrong, json: { error: { data: { problem: 'missing' } } } });
    expect((await callModern(gateway.url, 'heard')).status).toBe(200);
  });
});
