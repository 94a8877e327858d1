import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { modernFixture, root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { retryWith } from '../support/input-required.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern, metaKeys } from '../support/modern-client.ts';
import { connectModern, connectV1, connectV2, type SdkClient } from '../support/sdk-clients.ts';
import { awaitTask, callForTask, updateTask } from '../support/task-client.ts';
import { serverEntry, type ViewFile, writeViewFile } from '../support/view-file.ts';
import { waitFor } from '../support/wait-for.ts';

/** A server of 2025-11-25 and one of the modern era whose tools run only as tasks, each alone and behind a view. */
const legacyServer = [process.execPath, `${root}test/fixtures/slow-tools.mjs`, '--tasks'];
const modernServer = [...modernFixture, '--tasks'];
const servers = [
  { server: 'legacy', work: ['slow_compute', 'computed'], asks: ['confirm_delete', 'deleted'] },
  { server: 'modern', work: ['task_only', 'done'], asks: ['task_that_asks', 'confirmed'] },
] as const;
const clients = [
  { client: 'a client of 2025-11-25', connect: (url: string) => connectV1(url) },
  { client: 'a client of SDK 2 in a session', connect: (url: string) => connectV2(url) },
  { client: 'a client of 2026-07-28', connect: (url: string) => connectModern(url) },
] as const;
const eliciting = { meta: { [metaKeys.clientCapabilities]: { elicitation: {} } } };

describe('a tool that runs only as a task', () => {
  let file: ViewFile;
  let gateway: LocalGateway;
  let folder: string;
  let notes: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-server-tasks-'));
    notes = join(folder, 'notes');
    await writeFile(notes, '');
    file = await writeViewFile(
      { legacy: serverEntry([...legacyServer, notes]), modern: serverEntry(modernServer, { era: 'modern' }) },
      { both: { servers: ['legacy', 'modern'] } },
    );
    gateway = await startLocalGateway({ args: [...file.args, '--defaults.tasks.after', '100ms'] });
  });
  afterAll(async () => {
    await gateway?.stop();
    await file?.remove();
    await rm(folder, { recursive: true, force: true });
  });
  const urlOf = (server: string): string => `${gateway.baseUrl}/${server}/mcp`;

  describe.each(servers)('of a $server server', ({ server, work, asks }) => {
    describe.each(clients)('is called by $client', ({ connect }) => {
      it.each([server, 'both'])('at %s, and asks it', async (name) => {
        await using client: SdkClient = await connect(urlOf(name));
        const named = (tool: string) => (name === 'both' ? `${server}__${tool}` : tool);
        expect(await client.callTool(named(work[0]))).toBe(work[1]);
        expect(await client.callTool(named(asks[0]))).toBe(asks[1]);
        expect((await client.questions.next()).method).toBe('elicitation/create');
        expect(await client.callTool(named('greet'), { name: 'Ada' })).toBe('Hello, Ada!');
      });
    });

    it('is called for a task of the gateway, which another client of the same user collects', async () => {
      const answer = await callForTask(urlOf(server), asks[0]);
      // A server of the modern era makes the task itself.
      const { taskId } = answer;
      const { inputRequests = {} } = await awaitTask(() => urlOf(server), taskId, ['input_required']);
      await updateTask(urlOf(server), taskId, {
        [Object.keys(inputRequests)[0] ?? '']: { action: 'accept', content: {} },
      });
      expect(await awaitTask(() => urlOf(server), taskId)).toMatchObject({ result: { content: [{ text: asks[1] }] } });
    });

    it('asks a client of 2026-07-28 in a round, and takes no answers to another one', async () => {
      const asking = await callModern(urlOf(server), asks[0], {}, eliciting);
      expect(asking.json.result.resultType).toBe('input_required');
      const retry = retryWith(asking, () => ({ action: 'accept', content: {} }));
      const wrong = await callModern(
        urlOf(server),
        asks[0],
        {},
        { ...eliciting, params: { ...retry, requestState: 'gangway-task-x' } },
      );
      expect(wrong.json.result?.content?.[0]?.text).not.toBe(asks[1]);
      const { json } = await callModern(urlOf(server), asks[0], {}, { ...eliciting, params: retry });
      expect(json.result).toMatchObject({ resultType: 'complete', content: [{ text: asks[1] }] });
    });
  });

  it.each([
    ['legacy__slow_compute', 'computed'],
    ['modern__task_only', 'done'],
  ])('is a task of 2025-11-25 for a client of a view that asks for one: %s', async (name, text) => {
    const session = await initialize(urlOf('both'));
    const { messages } = await session.request('tools/call', { name, arguments: {}, task: { ttl: 60_000 } });
    const { taskId } = messages.at(-1).result.task;
    const listed = (await session.request('tasks/list')).messages.at(-1).result.tasks;
    expect(listed.map((task: { taskId: string }) => task.taskId)).toContain(taskId);
    const ended = (await session.request('tasks/result', { taskId })).messages.at(-1);
    expect(ended.result).toMatchObject({
      content: [{ text }],
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    });
    expect((await session.request('tasks/get', { taskId })).messages.at(-1).result.status).toBe('completed');
    await session.delete();
  });

  it('ends with the error of its task', async () => {
    const { json } = await callModern(urlOf('legacy'), 'protocol_error_job');
    expect(json.error).toMatchObject({ code: -32603, message: 'The job broke' });
    await using client = await connectV1(urlOf('legacy'));
    await expect(client.callTool('protocol_error_job')).rejects.toThrow('The job broke');
  });

  it('is cancelled as a task', async () => {
    const cancelled = async () => (await readFile(notes, 'utf8')).includes('cancelled slow_compute');
    const session = await initialize(urlOf('legacy'));
    const call = session.request('tools/call', { name: 'slow_compute', arguments: { seconds: 60 } }, { id: 'c' });
    await waitFor(async () => (await readFile(notes, 'utf8')).includes('"seconds":60'));
    await session.notify('notifications/cancelled', { requestId: 'c' });
    await waitFor(cancelled);
    expect((await call).messages.map(({ error }) => error?.data?.reason)).toEqual(['cancelled']);
  });
});
