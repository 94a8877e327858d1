import { describe, expect, it } from 'vitest';
import { createTranslation } from './fake-server-side.ts';

const related = 'io.modelcontextprotocol/related-task';
const withTasks = { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };

/** A session of 2025-11-25 at a modern server, and what its client hears. */
async function open(capabilities: object = withTasks, protocolVersion = '2025-11-25', maxQueuedBytes?: number) {
  const translation = createTranslation(maxQueuedBytes);
  const params = { protocolVersion, capabilities: { elicitation: {} }, clientInfo: { name: 'c', version: '1' } };
  translation.send({ id: 'init', method: 'initialize', params });
  translation.last.result({ capabilities });
  const [opening] = await translation.heard();
  const ask = async (id: number, method: string, params: object = {}) => {
    translation.request(id, method, params);
    return translation.heard();
  };
  const begin = async (id = 1, task: object = {}) => {
    const [made] = await ask(id, 'tools/call', { name: 'x', arguments: { a: 1 }, task });
    return made.result.task as { readonly taskId: string; readonly ttl: number };
  };
  return { translation, opening, ask, begin };
}

describe('a client of 2025-11-25 that asks a modern server for a task', () => {
  it('may do so if the server has the extension and the session is of that revision', async () => {
    const { opening, ask, translation } = await open();
    expect(opening.result.capabilities).toEqual({
      tools: {},
      extensions: {},
      tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } },
    });
    await ask(1, 'tools/list');
    translation.last.result({
      tools: [
        { name: 'x', inputSchema: {} },
        { execution: { taskSupport: 'forbidden' }, name: 'y' },
      ],
    });
    const [listed] = await translation.heard();
    expect(listed.result.tools.map(({ execution }: { execution: object }) => execution)).toEqual([
      { taskSupport: 'optional' },
      { taskSupport: 'forbidden' },
    ]);
    for (const other of [await open({ tools: {} }), await open(withTasks, '2025-06-18')]) {
      expect(other.opening.result.capabilities.tasks).toBeUndefined();
      expect(await other.ask(1, 'tasks/list')).toEqual([{ ids: [1], reason: 'method_of_other_era' }]);
    }
  });

  it('gets the task at once, and the result for each request that waits or comes later', async () => {
    const { begin, ask, translation } = await open();
    const { taskId, ttl } = await begin(1, { ttl: 5_000 });
    expect(ttl).toBe(5_000);
    expect(translation.last.request.params).toMatchObject({ name: 'x', arguments: { a: 1 } });
    expect(translation.last.request.params.task).toBeUndefined();
    expect(await ask(2, 'tasks/get', { taskId })).toMatchObject([{ of: [2], result: { taskId, status: 'working' } }]);
    expect(await ask(3, 'tasks/result', { taskId })).toEqual([]);
    translation.last.result({ content: [{ type: 'text', text: 'done' }] });
    const result = { content: [{ text: 'done' }], _meta: { [related]: { taskId } } };
    expect(await translation.heard()).toMatchObject([{ of: [3], id: 3, result }]);
    expect(await ask(4, 'tasks/result', { taskId })).toMatchObject([{ id: 4, result }]);
    expect(await ask(5, 'tasks/list')).toMatchObject([{ result: { tasks: [{ taskId, status: 'completed' }] } }]);
    expect(await ask(6, 'tasks/cancel', { taskId })).toMatchObject([{ error: { code: -32602 } }]);
    expect(await ask(7, 'tasks/get', { taskId: 'other' })).toMatchObject([
      { error: { data: { reason: 'unknown_task' } } },
    ]);
  });

  it('[P3] learns that the outcome is unknown if the task was lost with an earlier owner of the session', async () => {
    const { taskId } = await (await open()).begin(1, { ttl: 5_000 });
    const { ask } = await open();
    const [state] = await ask(2, 'tasks/get', { taskId });
    expect(state.result).toMatchObject({ taskId, status: 'failed', ttl: 5_000, createdAt: expect.any(String) });
    expect(state.result.statusMessage).toMatch(/unknown/);
    const [result] = await ask(3, 'tasks/result', { taskId });
    expect(result.error.data.reason).toBe('outcome_unknown');
    expect(await ask(4, 'tasks/cancel', { taskId })).toMatchObject([{ error: { code: -32602 } }]);
    // The time of this one is over, and the others are none.
    const [, , , ...random] = taskId.split('-');
    for (const other of [
      ['gangway', '1', '1', ...random],
      ['gangway', 'zzzzzzzzzzz', '1', ...random],
      ['other', 'task'],
    ])
      expect(await ask(5, 'tasks/get', { taskId: other.join('-') })).toMatchObject([{ error: { code: -32602 } }]);
  });

  it('gets the questions of the server with the request for the result', async () => {
    const { begin, ask, translation } = await open();
    const { taskId } = await begin();
    const inputRequests = { k: { method: 'elicitation/create', params: { message: 'Who?' } } };
    translation.last.result({ resultType: 'input_required', inputRequests, requestState: 's' });
    expect(await translation.heard()).toEqual([]);
    expect(await ask(2, 'tasks/get', { taskId })).toMatchObject([{ result: { status: 'input_required' } }]);
    const [question] = await ask(3, 'tasks/result', { taskId });
    expect(question).toMatchObject({ of: [3], params: { message: 'Who?', _meta: { [related]: { taskId } } } });
    translation.send({ id: question.id, result: { action: 'accept' } });
    expect(translation.last.request.params).toMatchObject({ inputResponses: { k: { action: 'accept' } } });
    expect(await ask(4, 'tasks/get', { taskId })).toMatchObject([{ result: { status: 'working' } }]);
    translation.last.result({ content: [], isError: true });
    expect(await translation.heard()).toMatchObject([{ id: 3, result: { isError: true } }]);
    expect(await ask(5, 'tasks/get', { taskId })).toMatchObject([{ result: { status: 'failed' } }]);
  });

  it('gets errors as the result, and may cancel the task or only stop to wait', async () => {
    const { begin, ask, translation } = await open();
    const failing = await begin(1);
    translation.last.error({ code: -5, message: 'no' });
    expect(await ask(2, 'tasks/result', { taskId: failing.taskId })).toMatchObject([{ id: 2, error: { code: -5 } }]);
    const { taskId } = await begin(3);
    await ask(4, 'tasks/result', { taskId });
    translation.send({ method: 'notifications/cancelled', params: { requestId: 4 } });
    expect(translation.last.isCancelled).toBe(false);
    await ask(5, 'tasks/result', { taskId });
    const heard = await ask(6, 'tasks/cancel', { taskId });
    expect(heard).toMatchObject([
      { id: 5, error: { data: { reason: 'cancelled' } } },
      { id: 6, result: { status: 'cancelled' } },
    ]);
    expect(translation.last.isCancelled).toBe(true);
  });

  it('[P8] has at most 100 tasks, and results within the memory of its session', async () => {
    const { begin, ask, translation } = await open(withTasks, '2025-11-25', 100_000);
    const { taskId } = await begin(1);
    translation.last.result({ content: [{ type: 'text', text: 'x'.repeat(200_000) }] });
    const [end] = await ask(2, 'tasks/result', { taskId });
    expect(end.error.data.reason).toBe('event_too_large');
    for (let id = 3; id < 102; id += 1) await begin(id);
    expect(await ask(200, 'tools/call', { name: 'x', task: {} })).toEqual([{ ids: [200], reason: 'too_many_calls' }]);
  });
});
