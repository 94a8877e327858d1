import { describe, expect, test } from 'vitest';
import { type Gateway, root, startGateway } from '../support/gateway.ts';
import { callModern, metaKeys, modernRevision, postModern } from '../support/modern-client.ts';
import { connectModernSdk } from '../support/modern-sdk-client.ts';

/** What foreign suites, real servers and the SDK's own tests found where the eras meet. */

const foreign = (era: 'legacy' | 'modern'): readonly string[] => [
  process.execPath,
  `${root}test/fixtures/children/foreign-server.mjs`,
  era,
];
const startLegacy = (...args: string[]): Promise<Gateway> =>
  startGateway({ command: foreign('legacy'), args: ['--era', 'legacy', '--isolation', 'shared', ...args] });
const startModern = (...args: string[]): Promise<Gateway> =>
  startGateway({ command: foreign('modern'), args: ['--era', 'modern', ...args] });
const pinned = { pin: modernRevision };
const textOf = ({ json }: Awaited<ReturnType<typeof callModern>>): string => json.result.content[0].text;

describe.each([
  ['legacy', startLegacy],
  ['modern', startModern],
] as const)('an official client of 2026-07-28 at a %s server', (_, start) => {
  test('[M-03] reads the error -32601 of a tool, prompt or resource that there is not', async () => {
    await using gateway = await start();
    await using sdk = await connectModernSdk(gateway.url, pinned);
    const isMissing = { code: -32601, message: expect.stringContaining('Not found here') };
    await expect(sdk.client.callTool({ name: 'none' })).rejects.toMatchObject(isMissing);
    await expect(sdk.client.getPrompt({ name: 'none' })).rejects.toMatchObject(isMissing);
    await expect(sdk.client.readResource({ uri: 'acme://none' })).rejects.toMatchObject(isMissing);
    expect((await postModern(gateway.url, 'no/such')).status).toBe(404);
  });

  test('[M-02] is told at once that subscriptions/listen needs notifications', async () => {
    await using gateway = await start();
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
  expect(named.json.error.message).toBe('Header mismatch: Mcp-Name does not say what the body says.');
  const later = { [metaKeys.protocolVersion]: '2027-01-01' };
  const headers = { 'MCP-Protocol-Version': '2027-01-01' };
  const unknown = await postModern(gateway.url, 'tools/list', {}, { headers, meta: later });
  expect(unknown.json.error.message).toContain('Supported: 2026-07-28.');
});
