import { describe, expect, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { openAnswered } from '../support/answered-session.ts';
import { everythingFixture, modernFixture } from '../support/gateway.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern, postModern } from '../support/modern-client.ts';
import { startPolicyService } from '../support/policy-service.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';

const long = `${'Zeile mit ä und 😀, "Zitat" und \\.\n'.repeat(200)}Ende`;
const limit = ['--defaults.limits.result', '2KiB'];

// biome-ignore lint/suspicious/noExplicitAny: a test reads results of every shape
type Result = any;

/** Checks a cut result, and returns the URI of the whole text. */
function expectCut({ content }: Result): string {
  const [cut, link] = content;
  const [kept, notice] = cut.text.split('\n\n[Cut by the gateway');
  expect(long.startsWith(kept)).toBe(true);
  expect(kept.length).toBeGreaterThan(1_000);
  expect(Buffer.byteLength(JSON.stringify(cut.text))).toBeLessThanOrEqual(2_048 + 2);
  expect(link).toMatchObject({ type: 'resource_link', mimeType: 'text/plain' });
  expect(notice).toContain(link.uri);
  expect(notice).toMatch(/after 2 KiB of \d+ KiB/);
  return link.uri;
}

describe.each(['legacy', 'modern'] as const)('a %s server', (era) => {
  const command = era === 'legacy' ? everythingFixture : modernFixture;

  test('has its long texts cut for clients of both eras, which can read the whole ones', async () => {
    const { url } = await startLocalGateway({ command, args: limit });
    const session = await openAnswered(url);
    const result = await session.callTool('echo', { text: long });
    const uri = expectCut(result);
    const read = (await session.request('resources/read', { uri })).json.result;
    expect(read.contents).toEqual([{ uri, mimeType: 'text/plain', text: long }]);
    const modern = (await callModern(url, 'echo', { text: long })).messages.at(-1).result;
    const other = expectCut(modern);
    const whole = (await postModern(url, 'resources/read', { uri: other })).messages.at(-1).result;
    expect(whole).toMatchObject({
      resultType: 'complete',
      cacheScope: 'private',
      contents: [{ uri: other, text: long }],
    });
    expect((await session.callTool('echo', { text: 'short' })).content).toEqual([{ type: 'text', text: 'short' }]);
    const unknown = (await session.request('resources/read', { uri: 'mcp-gangway://results/none' })).json.error;
    expect(unknown).toMatchObject({ code: -32602, data: { reason: 'result_expired' } });
  });
});

test('a client before 2025-06-18 gets the URI in the text, and no link', async () => {
  const { url } = await startLocalGateway({ command: everythingFixture, args: limit });
  const session = await openAnswered(url, { version: '2025-03-26' });
  const { content } = await session.callTool('echo', { text: long });
  expect(content).toHaveLength(1);
  const [uri] = /mcp-gangway:\/\/results\/[\w-]+/.exec(content[0].text) as RegExpExecArray;
  expect((await session.request('resources/read', { uri })).json.result.contents[0].text).toBe(long);
});

test('[P11] in a view, the whole text is for the user who called, on any of its endpoints', async () => {
  const keys = { ada: 'a'.repeat(40), bob: 'b'.repeat(40) };
  const policy = await startPolicyService();
  const { args } = await writeViewFile(
    {
      one: serverEntry(everythingFixture, {
        limits: { result: '2KiB' },
        policy: { url: policy.url, on: ['result'] },
      }),
      two: serverEntry(everythingFixture),
    },
    { all: ['*'] },
  );
  const gateway = await startLocalGateway({
    args,
    env: {
      GANGWAY_API_KEYS: Object.entries(keys)
        .map(([name, key]) => `${name}:sha256:${digestOfKey(key)}`)
        .join(),
    },
  });
  const open = (path: string, user: keyof typeof keys) =>
    openAnswered(`${gateway.baseUrl}/${path}/mcp`, { headers: { Authorization: `Bearer ${keys[user]}` } });
  const session = await open('all', 'ada');
  const uri = expectCut(await session.callTool('one__echo', { text: long }));
  expect(policy.inputs[0].result.content[0].text).toBe(long);
  expect((await session.callTool('two__echo', { text: long })).content[0].text).toBe(long);
  for (const path of ['all', 'one']) {
    const reading = async (user: keyof typeof keys) =>
      (await (await open(path, user)).request('resources/read', { uri })).json;
    expect((await reading('ada')).result.contents[0].text).toBe(long);
    expect((await reading('bob')).error.data.reason).toBe('result_expired');
  }
});

test('a server without resources has them for its clients, and its lists are empty', async () => {
  const root = new URL('../..', import.meta.url).pathname;
  const command = [process.execPath, `${root}test/fixtures/careless-server.mjs`];
  const { url } = await startLocalGateway({ command, args: [...limit, '--era', 'legacy'] });
  const session = await openAnswered(url);
  expect(session.initialized.capabilities.resources).toEqual({});
  expect((await session.request('resources/list')).json.result).toEqual({ resources: [] });
  expect((await session.request('resources/templates/list')).json.result).toEqual({ resourceTemplates: [] });
});

test('the limit is at least 1 KiB', async () => {
  await expect(
    startLocalGateway({ command: everythingFixture, args: ['--defaults.limits.result', '100B'] }),
  ).rejects.toThrow(/limits\.result/);
});
