import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Backend, BackendEvents, OpenOptions, Resume } from '../../../src/core/backend/backend.ts';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { readLists } from '../../../src/core/backend/list-reader.ts';
import { runServerTasks } from '../../../src/features/tasks/server-tasks.ts';
import { asMessage } from '../../support/as-message.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
type Json = any;

const extension = 'io.modelcontextprotocol/tasks';
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const openings = {
  legacy: { method: 'initialize', result: { capabilities: { tasks: { requests: { tools: { call: {} } } } } } },
  modern: { method: 'server/discover', result: { capabilities: { extensions: { [extension]: {} } } } },
};
const refusal = { code: -32021, message: 'no', data: { requiredCapabilities: { extensions: { [extension]: {} } } } };

/** A server with tasks, of which the test is both the server and the user. */
function connect(era: 'legacy' | 'modern', resume?: Resume) {
  const sent: Json[] = [];
  const told: Json[] = [];
  const states: string[] = [];
  let events: BackendEvents | undefined;
  let resumed: Resume | undefined;
  const open = (given: BackendEvents, opening?: OpenOptions): Backend => {
    events = given;
    resumed = opening?.resume;
    const send = (message: { readonly text: Buffer }): 'sent' => {
      sent.push(JSON.parse(message.text.toString()));
      return 'sent';
    };
    return { pid: undefined, send, pause: () => undefined, resume: () => undefined, close: async () => undefined };
  };
  const { interceptor, learn } = runServerTasks();
  const user = linkBackends(open, [...readLists([learn]), interceptor])(
    {
      onMessages: (messages, of) => told.push(...messages.map(({ text }) => ({ of, ...JSON.parse(text.toString()) }))),
      onNoise: () => undefined,
      onUnanswered: (ids, reason) => told.push({ ids, reason }),
      onState: (state) => states.push(state),
      onEnd: () => undefined,
    },
    { headers: () => ({ authorization: 'newest' }), resume },
  );
  const say = (message: object, related?: readonly number[]) =>
    events?.onMessages([asMessage({ jsonrpc: '2.0', ...message })], related);
  const ask = (message: object) => user.send(asMessage({ jsonrpc: '2.0', ...message }));
  const { method, result } = openings[era];
  if (resume === undefined) {
    ask({ id: 0, method, params: {} });
    say({ id: 0, result });
  }
  sent.length = 0;
  told.length = 0;
  return {
    ...{ sent, told, say, ask, states, resumed: () => resumed },
    tellState: (state: string) => events?.onState?.(state),
    unanswered: (id: number) => events?.onUnanswered([id], 'server_unreachable'),
    /** Calls a tool, which the server refuses. Returns the request for a task. */
    call(id: number, params: object = {}) {
      const _meta = { [capabilitiesKey]: { elicitation: {} }, progressToken: 'p' };
      ask({ id, method: 'tools/call', params: { name: 'x', _meta, ...params } });
      say({ id, error: era === 'modern' ? refusal : { code: -32601, message: 'no' } });
      return sent.at(-1);
    },
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const working = (more: object = {}) => ({ taskId: 't', status: 'working', pollIntervalMs: 200, ...more });

describe('a call that a modern server serves only as a task', () => {
  it('is sent again with the extension, asked about in the interval of the server, and answered under its id', () => {
    const { call, say, sent, told } = connect('modern');
    const start = call(1);
    expect(start.params._meta[capabilitiesKey]).toEqual({ elicitation: {}, extensions: { [extension]: {} } });
    say({ id: start.id, result: { resultType: 'task', ...working({ statusMessage: 'half' }) } });
    expect(told).toMatchObject([{ method: 'notifications/progress', params: { progressToken: 'p', message: 'half' } }]);
    vi.advanceTimersByTime(199);
    expect(sent).toHaveLength(2);
    vi.advanceTimersByTime(1);
    const poll = sent.at(-1);
    expect(poll).toMatchObject({
      method: 'tasks/get',
      params: { taskId: 't', _meta: start.params._meta && { [capabilitiesKey]: {} } },
    });
    expect(poll.params._meta.progressToken).toBeUndefined();
    say({ id: poll.id, result: working({ status: 'completed', result: { content: [] } }) });
    expect(told.at(-1)).toMatchObject({ id: 1, result: { resultType: 'complete', content: [] } });
  });

  it('asks for input in a round, whose state is nobody else’s, and goes on with the answers', async () => {
    const { call, say, ask, sent, told } = connect('modern');
    const start = call(1);
    const inputRequests = { k: { method: 'roots/list' } };
    const asking = working({ status: 'input_required', inputRequests });
    say({ id: start.id, result: { resultType: 'task', ...asking } });
    const { requestState } = told.at(-1).result;
    expect(told.at(-1)).toMatchObject({ id: 1, result: { resultType: 'input_required', inputRequests } });
    ask({
      id: 2,
      method: 'tools/call',
      params: { name: 'x', requestState: 'gangway-task-t', inputResponses: { k: {} } },
    });
    // Of another instance, perhaps: the call must not begin once more.
    await null;
    expect(told.pop()).toMatchObject({ id: 2, error: { data: { reason: 'outcome_unknown' } } });
    expect(sent.at(-1).method).toBe('tools/call');
    ask({ id: 3, method: 'tools/call', params: { name: 'x', requestState, inputResponses: { k: { roots: [] } } } });
    expect(sent.at(-1)).toMatchObject({
      method: 'tasks/update',
      params: { taskId: 't', inputResponses: { k: { roots: [] } } },
    });
    say({ id: sent.at(-1).id, result: {} });
    vi.advanceTimersByTime(200);
    // The server has not seen the answer yet.
    say({ id: sent.at(-1).id, result: asking });
    vi.advanceTimersByTime(200);
    say({ id: sent.at(-1).id, result: working({ status: 'failed', error: { code: -5, message: 'x' } }) });
    expect(told.slice(1)).toMatchObject([{ id: 3, error: { code: -5 } }]);
  });

  it('survives five questions about its task without an answer, and no sixth', () => {
    const { call, say, sent, told, unanswered } = connect('modern');
    const start = call(1);
    say({ id: start.id, result: { resultType: 'task', ...working() } });
    for (let lost = 0; lost < 6; lost += 1) {
      expect(told).toEqual([]);
      vi.advanceTimersByTime(200);
      unanswered(sent.at(-1).id);
    }
    expect(told).toEqual([{ ids: [1], reason: 'server_unreachable' }]);
    const { length } = sent;
    vi.advanceTimersByTime(10_000);
    expect(sent).toHaveLength(length);
  });
});

describe('a call that a server of 2025-11-25 serves only as a task', () => {
  it('is awaited, with what belongs to it, and cancelled as a task', () => {
    const { call, say, ask, sent, told } = connect('legacy');
    const start = call(1);
    expect(start.params).toMatchObject({ name: 'x', task: {} });
    say({ id: start.id, result: { task: { taskId: 't', status: 'working' } } });
    const waiting = sent.at(-1);
    expect(waiting).toMatchObject({ method: 'tasks/result', params: { taskId: 't' } });
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 't' } };
    say({ id: 'q', method: 'elicitation/create', params: { message: 'Who?', _meta } }, [waiting.id]);
    expect(told).toEqual([
      { of: [1], jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'Who?', _meta: {} } },
    ]);
    ask({ method: 'notifications/cancelled', params: { requestId: 1 } });
    expect(sent.at(-1)).toMatchObject({ method: 'tasks/cancel', params: { taskId: 't' } });
    say({ id: sent.at(-1).id, result: {} });
    say({ id: waiting.id, error: { code: -1, message: 'cancelled' } });
    expect(told).toHaveLength(1);
  });

  it('[P3] goes on after its session has found another owner, and is not begun again', () => {
    const first = connect('legacy');
    const start = first.call(1);
    first.tellState('before');
    first.say({ id: start.id, result: { task: { taskId: 't', status: 'working' } } });
    const waiting = first.sent.at(-1);
    first.tellState('after');
    const question = { id: 'q', method: 'elicitation/create', params: { message: 'Who?', _meta: {} } };
    const delivered = [asMessage({ jsonrpc: '2.0', ...question })];
    const [state = ''] = first.states.slice(-1);
    const next = connect('legacy', { state, pending: [1, 2], delivered });
    expect(next.resumed()).toMatchObject({ state: 'after', pending: [waiting.id, 2] });
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId: 't' } };
    const asked = { ...question, params: { message: 'Who?', _meta } };
    next.say(asked, [waiting.id]);
    expect(next.told).toEqual([]);
    next.say({ ...asked, id: 'r' }, [waiting.id]);
    expect(next.told).toMatchObject([{ of: [1], id: 'r', params: { _meta: {} } }]);
    // What came to the lost request for the result cannot be read: the server is asked again.
    next.unanswered(waiting.id);
    vi.advanceTimersByTime(1_000);
    expect(next.sent).toMatchObject([{ method: 'tasks/result', params: { taskId: 't' } }]);
    next.say({ id: next.sent[0].id, result: { content: [], _meta } });
    expect(next.told.at(-1)).toMatchObject({ id: 1, result: { content: [] } });
    // Other tools that run only as tasks are known to do so.
    expect(next.call(3).params).toMatchObject({ name: 'x', task: {} });
  });

  it('[P3] leaves the resume state of a server without tasks as it is', () => {
    const { tellState, states } = connect('modern');
    tellState('plain');
    expect(states).toEqual(['plain']);
    expect(connect('legacy', { state: 'plain', pending: [1], delivered: [] }).resumed()?.state).toBe('plain');
  });

  it('begins as a task if a list has said so, and passes unchanged if its client asks for one', () => {
    const { say, ask, sent, told } = connect('legacy');
    ask({ id: 1, method: 'tools/list', params: {} });
    say({ id: 1, result: { tools: [{ name: 'x', execution: { taskSupport: 'required' } }] } });
    ask({ id: 2, method: 'tools/call', params: { name: 'x' } });
    expect(sent.at(-1)).toMatchObject({ params: { name: 'x', task: {} } });
    ask({ id: 3, method: 'tools/call', params: { name: 'x', task: { ttl: 1 } } });
    expect(sent.at(-1)).toMatchObject({ id: 3, params: { task: { ttl: 1 } } });
    say({ id: 3, error: { code: -32601, message: 'no' } });
    expect(told.at(-1)).toMatchObject({ id: 3, error: { code: -32601 } });
  });

  it('[P8] is kept for a second attempt with 999 others', () => {
    const { say, ask, sent, told } = connect('legacy');
    for (let id = 1; id <= 1_001; id += 1) ask({ id, method: 'tools/call', params: { name: 'x' } });
    say({ id: 1_001, error: { code: -32601, message: 'no' } });
    expect(told).toMatchObject([{ id: 1_001, error: { code: -32601 } }]);
    say({ id: 1_000, error: { code: -32601, message: 'no' } });
    expect(sent.at(-1)).toMatchObject({ params: { task: {} } });
  });
});
