import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { openAnswered } from '../support/answered-session.ts';
import { createAuditFile } from '../support/audit-lines.ts';
import { everythingFixture, type GatewayOptions, modernFixture, root } from '../support/gateway.ts';
import { sharedLocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { waitForMetric } from '../support/metrics.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { type PolicyInput, type PolicyService, RawAnswer, startPolicyService } from '../support/policy-service.ts';
import { findFreePort } from '../support/redis-process.ts';
import { awaitTask, callForTask, updateTask } from '../support/task-client.ts';
import { serverEntry, type ViewFile, writeViewFile } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';

type Decide = (input: PolicyInput) => unknown;

/** What the log calls an answer that is no decision; `decision.test.ts` has all forms of an unusable one. */
const failures: Readonly<Record<string, Decide>> = {
  status: () => new RawAnswer(500, 'oops'),
  unusable: () => 'perhaps',
  too_large: () => new RawAnswer(200, JSON.stringify({ result: { allow: true, note: 'x'.repeat(5_000_000) } })),
  slow: () => new Promise(() => undefined),
};

/** The service that all tests ask, unless they start one of their own. */
let service: PolicyService;
let file: ViewFile;

beforeAll(async () => {
  service = await startPolicyService();
  const policed = (command: readonly string[], policy: object = {}, more: object = {}) =>
    serverEntry(command, { policy: { url: service.url, ...policy }, ...more });
  const checked = { on: ['request', 'result'] };
  file = await writeViewFile(
    {
      legacy: policed(everythingFixture),
      modern: policed(modernFixture),
      'legacy-checked': policed(everythingFixture, checked),
      'modern-checked': policed(modernFixture, checked),
      'legacy-tasks': policed(everythingFixture, {}, { tasks: { after: '0' } }),
      'modern-tasks': policed(modernFixture, {}, { tasks: { after: '0' } }),
      ...Object.fromEntries(
        Object.keys(failures).flatMap((reason) =>
          ['deny', 'allow'].map((onFailure) => [
            `${onFailure}-${reason}`,
            policed(everythingFixture, { timeout: '1s', onFailure }),
          ]),
        ),
      ),
    },
    {},
  );
});
beforeEach(() => {
  service.inputs.length = 0;
});
afterAll(async () => {
  service.close();
  await file.remove();
});

const shared = sharedLocalGateway(async () => ({ args: file.args }));

/** The endpoint of a server, whose policy decides so from now on. */
async function behindPolicy(server: string, decide: Decide): Promise<string> {
  service.decide = decide;
  return `${(await shared()).baseUrl}/${server}/mcp`;
}

/** A gateway of a test, whose only server has a policy with these settings. */
const startBehind = (url: string, { args = [], ...more }: GatewayOptions = {}, policy: object = {}) =>
  startLocalGateway({
    ...more,
    command: everythingFixture,
    args: ['--defaults.policy', JSON.stringify({ url, ...policy }), ...args],
  });

const textOf = ({ json }: { json: PolicyInput }): string => json.result.content[0].text;
const call = (text: string) => ({ name: 'echo', arguments: { text } });

describe.each(['legacy', 'modern'] as const)('a %s server', (era) => {
  test('gets what the policy allows, from clients of both eras, and the policy is asked once for each', async () => {
    const connections = service.connections();
    const url = await behindPolicy(era, ({ arguments: { text } }) =>
      text === 'no' ? { allow: false, reason: 'Only yes.' } : true,
    );
    const session = await openAnswered(url);
    expect(textOf(await session.request('tools/call', call('yes')))).toContain('yes');
    expect(textOf(await callModern(url, 'echo', { text: 'yes' }))).toContain('yes');
    const refusals = [
      (await session.request('tools/call', call('no'))).json.error,
      (await callModern(url, 'echo', { text: 'no' })).json.error,
    ];
    for (const error of refusals) {
      expect(error.data).toMatchObject({ reason: 'policy_denied', why: 'Only yes.' });
      expect(error.message).toContain('Only yes.');
    }
    expect(service.inputs).toHaveLength(4);
    expect(service.inputs[0]).toEqual({
      phase: 'request',
      server: era,
      method: 'tools/call',
      name: 'echo',
      principal: {},
      headers: {},
      arguments: { text: 'yes' },
    });
    expect(service.connections() - connections).toBeLessThanOrEqual(2);
  });

  test('gets changed arguments, and its result is changed or withheld', async () => {
    const url = await behindPolicy(`${era}-checked`, ({ phase, arguments: { text } }) => {
      if (phase === 'request') return { allow: true, arguments: { text: `${text} and more` } };
      if (text.startsWith('secret')) return { allow: false, reason: 'It is secret.' };
      return (
        text.startsWith('plain') || {
          allow: true,
          result: { content: [{ type: 'text', text: 'masked' }], resultType: 'complete' },
        }
      );
    });
    const session = await openAnswered(url);
    for (const ask of [
      async (text: string) => session.request('tools/call', call(text)),
      async (text: string) => callModern(url, 'echo', { text }),
    ]) {
      expect(textOf(await ask('plain'))).toContain('plain and more');
      expect(textOf(await ask('else'))).toBe('masked');
      expect((await ask('secret')).json.error.data).toMatchObject({ reason: 'policy_withheld', why: 'It is secret.' });
    }
  });

  test('gets what a person has approved, and nothing else', async () => {
    const url = await behindPolicy(era, () => ({ approval: { message: 'May I?' } }));
    const capabilities = { elicitation: {} };
    const session = await openAnswered(url, { capabilities });
    for (const action of ['accept', 'decline']) {
      const exchange = await session.send({ jsonrpc: '2.0', id: action, method: 'tools/call', params: call('x') });
      const question = await exchange.nextMessage(({ method }) => method === 'elicitation/create');
      expect(question.params).toMatchObject({ message: 'May I?', requestedSchema: { type: 'object' } });
      await session.respond(question.id, { action, ...(action === 'accept' && { content: {} }) });
      const { messages } = await exchange.answer();
      const last = messages.at(-1);
      if (action === 'accept') expect(last.result.content[0].text).toContain('x');
      else expect(last.error.data.reason).toBe('approval_declined');
    }
    const meta = { [metaKeys.clientCapabilities]: capabilities };
    const ask = async (args: object, params: object = {}) =>
      (await callModern(url, 'echo', args, { meta, params: params as Record<string, unknown> })).messages.at(-1);
    const first = (await ask({ text: 'x' })).result;
    expect(first.resultType).toBe('input_required');
    const [[key, question]] = Object.entries<PolicyInput>(first.inputRequests) as [[string, PolicyInput]];
    expect(question).toMatchObject({ method: 'elicitation/create', params: { message: 'May I?' } });
    const answer = { requestState: first.requestState, inputResponses: { [key]: { action: 'accept', content: {} } } };
    const other = await ask({ text: 'another' }, answer);
    if (era === 'modern') expect(other.error.data.reason).toBe('approval_declined');
    expect((await ask({ text: 'x' }, answer)).result?.content?.[0].text ?? 'none').toContain(
      era === 'modern' ? 'x' : '',
    );
    const declined = (await ask({ text: 'x' })).result;
    const [no] = Object.keys(declined.inputRequests) as [string];
    const refused = await ask(
      { text: 'x' },
      { requestState: declined.requestState, inputResponses: { [no]: { action: 'decline' } } },
    );
    expect(refused.error.data.reason).toBe('approval_declined');
  });

  test('is not reached by clients that cannot be asked', async () => {
    const url = await behindPolicy(era, () => ({ approval: true }));
    const session = await openAnswered(url);
    const answers = [await session.request('tools/call', call('x')), await callModern(url, 'echo', { text: 'x' })];
    for (const { json } of answers) expect(json.error.data.reason).toBe('approval_impossible');
  });
});

test.each(Object.entries(failures))(
  'a service whose answer is %s denies, says why in the log, and allows if the operator wants that',
  async (reason, decide) => {
    for (const onFailure of ['deny', 'allow']) {
      // The log names a failure of a server once in a while, so each failure has a server of its own.
      const server = `${onFailure}-${reason}`;
      const session = await openAnswered(await behindPolicy(server, decide));
      const { json } = await session.request('tools/call', call('x'));
      if (onFailure === 'deny') expect(json.error.data).toEqual({ reason: 'policy_unavailable' });
      else expect(json.result.content[0].text).toContain('x');
      const { logs } = await shared();
      const logged = () => logs().find((line) => line['server'] === server && line['phase'] === 'request');
      await waitFor(() => logged() !== undefined, { what: 'the failure in the log' });
      expect(logged()).toMatchObject({ reason });
    }
  },
);

test('an unreachable service denies at once, and a result that nobody checked is withheld', async () => {
  const mortal = await startPolicyService(({ phase }) => (phase === 'request' ? true : new RawAnswer(503, '')));
  const gateway = await startBehind(mortal.url, {}, { on: ['request', 'result'] });
  const session = await openAnswered(gateway.url);
  expect((await session.request('tools/call', call('x'))).json.error.data.reason).toBe('result_unchecked');
  mortal.close();
  expect((await session.request('tools/call', call('x'))).json.error.data.reason).toBe('policy_unavailable');
});

test('decisions are in the metrics and in the audit log', async () => {
  const audit = createAuditFile();
  const adminPort = await findFreePort();
  service.decide = ({ arguments: { text } }) => text === 'yes';
  const gateway = await startBehind(service.url, { adminPort, args: audit.args });
  const session = await openAnswered(gateway.url);
  await session.request('tools/call', call('yes'));
  await session.request('tools/call', call('no'));
  expect(await audit.words(3)).toEqual(['initialize ok', 'tools/call echo ok', 'tools/call echo fault policy_denied']);
  const counted = (decision: string) =>
    waitForMetric(adminPort, 'mcp_gangway_policy_decisions_total', { decision }, (value) => value === 1);
  await counted('allow');
  await counted('deny');
});

test('the policy learns who asks, and of headers only those that the operator names', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-policy-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const service = await startPolicyService();
  const other = await startPolicyService();
  const [command, ...commandArgs] = everythingFixture;
  const server = { command, args: commandArgs };
  const file = join(folder, 'gangway.json');
  writeFileSync(
    file,
    JSON.stringify({
      mcpServers: {
        one: { ...server, policy: { url: service.url, showHeaders: ['X-Team'] } },
        two: { ...server, policy: { url: other.url } },
        free: server,
      },
      views: { all: { servers: ['*'], policy: { url: service.url } } },
    }),
  );
  const key = 'k'.repeat(40);
  const gateway = await startLocalGateway({
    args: ['--config', file],
    env: { GANGWAY_API_KEYS: `ada:sha256:${digestOfKey(key)}` },
  });
  const headers = { Authorization: `Bearer ${key}`, 'X-Team': 'red', 'X-Other': 'no' };
  const session = await openAnswered(`${gateway.baseUrl}/all/mcp`, { headers });
  for (const name of ['one', 'two', 'free'])
    expect(textOf(await session.request('tools/call', { ...call('x'), name: `${name}__echo` }))).toContain('x');
  const facts = { principal: { issuer: 'api-key', subject: 'ada' }, method: 'tools/call' };
  expect(service.inputs.map(({ server: asked, name }) => `${asked} ${name}`)).toEqual([
    'all one__echo',
    'one echo',
    'all two__echo',
    'all free__echo',
  ]);
  expect(service.inputs[1]).toMatchObject({ ...facts, headers: { 'x-team': 'red' } });
  expect(service.inputs[0]).toMatchObject({ ...facts, headers: {} });
  expect(other.inputs).toEqual([expect.objectContaining({ ...facts, server: 'two', name: 'echo', headers: {} })]);
  expect(JSON.stringify([service.inputs, other.inputs])).not.toContain(key);
});

test('check asks the service, and fails if there is no decision', async () => {
  const service = await startPolicyService(() => false);
  const [command, ...commandArgs] = everythingFixture;
  const { args } = await writeViewFile(
    { one: { command, args: commandArgs, policy: { url: service.url } } },
    { all: { servers: ['one'], policy: { url: `${service.url}/other` } } },
  );
  const check = () =>
    new Promise<{ code: number | null; printed: string }>((resolve) => {
      const child = spawn(process.execPath, [`${root}dist/main.js`, 'check', ...args], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let printed = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        printed += chunk;
      });
      child.on('close', (code) => resolve({ code, printed }));
    });
  const fine = await check();
  expect(fine.printed).toMatch(/OK {4}policy of one: it decides\nOK {4}policy of all: it decides/);
  expect(fine.code).toBe(0);
  expect(service.inputs[0]).toMatchObject({ phase: 'request', server: 'one', name: 'mcp-gangway-check' });
  service.decide = () => undefined;
  const wrong = await check();
  expect(wrong.printed).toMatch(/FAIL {2}policy of one: The answer has no result/);
  service.close();
  const gone = await check();
  expect(gone.printed).toMatch(
    /FAIL {2}policy of all: The policy service at http:.* cannot be reached \(ECONNREFUSED\)/,
  );
  expect([wrong.code, gone.code]).toEqual([1, 1]);
});

test.each(['legacy', 'modern'])('an approval is asked for within a task, at a %s server', async (era) => {
  const url = await behindPolicy(`${era}-tasks`, () => ({ approval: { message: 'May I?' } }));
  for (const action of ['accept', 'decline']) {
    const { taskId } = await callForTask(url, 'echo', { text: 'in a task' });
    const { inputRequests = {} } = await awaitTask(() => url, taskId, ['input_required']);
    const [[key, question]] = Object.entries(inputRequests) as [[string, { params: object }]];
    expect(question.params).toMatchObject({ message: 'May I?' });
    await updateTask(url, taskId, { [key]: { action, ...(action === 'accept' && { content: {} }) } });
    const { result, error } = await awaitTask(() => url, taskId);
    if (action === 'accept') expect(result?.content[0]?.text).toBe('in a task');
    else expect(error?.data?.reason).toBe('approval_declined');
  }
});
