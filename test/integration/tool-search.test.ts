import { expect, onTestFinished, test } from 'vitest';
import { openAnswered } from '../support/answered-session.ts';
import { createAuditFile } from '../support/audit-lines.ts';
import { everythingFixture, everythingReference } from '../support/gateway.ts';
import type { Session } from '../support/http-client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, postModern } from '../support/modern-client.ts';
import { startPolicyService } from '../support/policy-service.ts';
import { serverEntry, writeViewFile } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';

const publicUrl = 'https://mcp.example.com';

/** A view of two servers, whose clients search. */
async function startSearch({
  entry = {},
  view = {},
  args = [],
}: {
  entry?: object;
  view?: object;
  args?: readonly string[];
} = {}): Promise<{ readonly gateway: LocalGateway; readonly url: string }> {
  const { args: file } = await writeViewFile(
    { feature: serverEntry(everythingFixture, entry), reference: serverEntry(everythingReference) },
    { all: { servers: ['*'], searchTools: true, ...view } },
  );
  const gateway = await startLocalGateway({ args: [...file, ...args] });
  return { gateway, url: `${gateway.baseUrl}/all/mcp` };
}

// biome-ignore lint/suspicious/noExplicitAny: a test reads results of every shape
type Result = any;

const linesOf = ({ content }: Result): Result[] => content[0].text.split('\n').map((line: string) => JSON.parse(line));
const namesIn = (result: Result): string[] => linesOf(result).map(({ name }) => name);
const find = (session: Session, query: string, limit?: number) =>
  session.callTool('find_tools', { query, ...(limit !== undefined && { limit }) });

test('clients of both eras see two tools, find others by their words, and call them', async () => {
  const { url } = await startSearch();
  const session = await openAnswered(url);
  const listed = (await session.request('tools/list')).json.result.tools;
  expect(listed.map(({ name }: Result) => name)).toEqual(['find_tools', 'call_tool']);
  expect(listed[0].description).toContain('feature, reference');
  const found = await find(session, 'add two numbers');
  expect(namesIn(found)[0]).toBe('reference__get-sum');
  expect(linesOf(found)[0].inputSchema.properties).toHaveProperty('a');
  expect(namesIn(found).length).toBeLessThanOrEqual(5);
  expect(namesIn(await find(session, 'elicitations', 2))).toHaveLength(2); // with other endings, too
  expect((await find(session, 'xyzzyplugh')).content[0].text).toMatch(/No tool matches/);
  const sum = await session.callTool('call_tool', { name: 'reference__get-sum', arguments: { a: 2, b: 40 } });
  expect(sum.content[0].text).toContain('42');
  expect((await session.callTool('feature__echo', { text: 'by its name' })).content[0].text).toBe('by its name');
  expect((await session.callTool('call_tool', {})).isError).toBe(true);
  expect((await session.callTool('find_tools', {})).isError).toBe(true);

  const modern = (await postModern(url, 'tools/list')).messages.at(-1).result;
  expect(modern.tools.map(({ name }: Result) => name)).toEqual(['find_tools', 'call_tool']);
  const echo = { name: 'feature__echo', arguments: { text: 'modern' } };
  const answers = [
    await callModern(url, 'find_tools', { query: 'echo' }),
    await callModern(url, 'call_tool', echo),
    await callModern(url, 'call_tool', echo, { headers: { 'Mcp-Name': 'feature__echo' } }),
  ].map(({ messages }) => messages.at(-1));
  expect(namesIn(answers[0].result)).toContain('feature__echo');
  expect(answers[1].result).toMatchObject({ resultType: 'complete', content: [{ text: 'modern' }] });
  expect(answers[2].error.data.reason).toBe('header_mismatch'); // the header says another name than the message
});

test('filters, policy, audit and metrics have the names of the tools themselves', async () => {
  const audit = createAuditFile();
  const policy = await startPolicyService(({ name }) => name !== 'slow');
  const { url } = await startSearch({
    entry: { denyTools: ['logs'], policy: { url: policy.url } },
    args: audit.args,
  });
  const session = await openAnswered(url);
  expect(namesIn(await find(session, 'logs log logging messages', 20))).not.toContain('feature__logs');
  const call = async (name: string, args: object = {}) =>
    (await session.request('tools/call', { name: 'call_tool', arguments: { name, arguments: args } })).json;
  expect((await call('feature__logs')).error.data.reason).toBe('unknown_tool');
  expect((await call('feature__slow')).error.data.reason).toBe('policy_denied');
  expect((await call('feature__echo', { text: 'x' })).result.content[0].text).toBe('x');
  expect(policy.inputs.at(-1)).toMatchObject({ server: 'feature', name: 'echo', arguments: { text: 'x' } });
  expect((await audit.words(5)).filter((line) => line.startsWith('tools/call'))).toEqual([
    'tools/call find_tools ok',
    'tools/call feature__logs fault unknown_tool',
    'tools/call feature__slow fault policy_denied',
    'tools/call feature__echo ok',
  ]);
});

test('scopes are those of the tools themselves, also in what is found', async () => {
  const issuer: Issuer = await startIssuer();
  onTestFinished(() => issuer.close());
  const { url } = await startSearch({
    entry: { scopes: { tools: { echo: ['echo.call'] } } },
    args: ['--auth.oauth.issuers', issuer.url, '--public-url', publicUrl, '--auth.filterLists'],
  });
  const openWith = async (scope: string) => {
    const token = await issuer.token({ claims: { sub: 'ada', aud: `${publicUrl}/all/mcp`, scope } });
    return openAnswered(url, { headers: { Authorization: `Bearer ${token}` } });
  };
  const call = { name: 'call_tool', arguments: { name: 'feature__echo', arguments: { text: 'x' } } };
  const without = await openWith('other');
  expect(namesIn(await find(without, 'echo answers with its text', 20))).not.toContain('feature__echo');
  const refused = await without.request('tools/call', call);
  expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'insufficient_scope']);
  const having = await openWith('echo.call');
  expect(namesIn(await find(having, 'echo answers with its text', 20))).toContain('feature__echo');
  expect((await having.request('tools/call', call)).json.result.content[0].text).toBe('x');
});

test('a call whose arguments do not fit gets the schema, and a changed list is found', async () => {
  const { url } = await startSearch();
  const session = await openAnswered(url);
  const wrong = await session.request('tools/call', {
    name: 'call_tool',
    arguments: { name: 'reference__get-sum', arguments: { a: 'many' } },
  });
  const said = JSON.stringify(wrong.json);
  expect(said).toContain('The input schema of this tool is');
  expect(said).toContain('First number');
  const findAdded = async () => (await find(session, 'added_1', 20)).content[0].text;
  expect(await findAdded()).not.toContain('feature__added_1');
  const change = { name: 'feature__change_list', arguments: { what: 'tools' } };
  expect((await session.callTool('call_tool', change)).content[0].text).toBe('added_1');
  await waitFor(async () => (await findAdded()).includes('feature__added_1'), { what: 'the new tool to be found' });
});
