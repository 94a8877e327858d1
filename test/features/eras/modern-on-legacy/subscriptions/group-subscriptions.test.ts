import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Answer } from '../../../../../src/core/call/answer.ts';
import { LiveTarget } from '../../../../../src/core/call/live-target.ts';
import type { Reason } from '../../../../../src/core/protocol/faults.ts';
import { faultAnswer } from '../../../../../src/core/reply/reply.ts';
import type { SessionHandle } from '../../../../../src/core/session/session-handle.ts';
import { createMemoryStore } from '../../../../../src/core/store/memory/memory-store.ts';
import type { Store } from '../../../../../src/core/store/store.ts';
import { GroupSubscriptions } from '../../../../../src/features/eras/modern-on-legacy/subscriptions/group-subscriptions.ts';
import type { InitializedServer } from '../../../../../src/features/eras/translate/modern-on-legacy/legacy-discovery.ts';
import { readMessage } from '../../../../support/fake-backend.ts';
import { createFakeReply } from '../../../../support/fake-reply.ts';

const key = 'io.modelcontextprotocol/subscriptionId';
const change = (method: string, params?: object): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: `notifications/${method}`, ...(params && { params }) }));
const tools = change('tools/list_changed');
const updated = (uri: string): Buffer => change('resources/updated', { uri });

let store: Store;
beforeEach(() => {
  vi.useFakeTimers();
  store = createMemoryStore({ maxEvents: 1, maxBytes: 1, maxAgeMs: 1_000 });
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
});

interface Way {
  readonly capabilities?: object;
  /** What its server does not tell of. */
  readonly refuses?: readonly string[];
}

/** A subscription at a session that answers at once. */
function createListener(notifications: object, { capabilities, refuses = [] }: Way = {}) {
  const asked: { method: string; uri?: string; leases?: string }[] = [];
  const session = { fault: undefined as Reason | undefined, isGone: false, refusal: undefined as Reason | undefined };
  const handle: SessionHandle = {
    post({ messages: [message], group }, reply) {
      const { id, method, params } = JSON.parse(String(message?.text)) as {
        id: string;
        method: string;
        params: { uri?: string };
      };
      asked.push({ method, ...(params.uri && { uri: params.uri }), ...(group?.leases && { leases: group.leases }) });
      if (session.fault !== undefined) return reply.answer(faultAnswer(session.fault, id));
      const outcome = refuses.includes(params.uri ?? '') ? { error: { code: -32602, message: 'x' } } : { result: {} };
      reply.answer({ kind: 'json', text: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, ...outcome })) });
    },
    listen: () => undefined,
    remove: () => undefined,
  };
  const all = { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true } };
  const opened = { capabilitiesText: JSON.stringify(capabilities ?? all) } as InitializedServer;
  const reply = createFakeReply();
  const subscriptions = new GroupSubscriptions(store.changes, 100);
  let isReleased = false;
  const start = (): Promise<void> =>
    subscriptions.listen({
      request: readMessage(
        JSON.stringify({ jsonrpc: '2.0', id: 'L', method: 'subscriptions/listen', params: { notifications } }),
      ),
      answer: new Answer(new LiveTarget(1e9), { era: 'modern', reply, ids: ['L'], commitAfterMs: 1e9 }),
      session: {
        open: async () => {
          if (session.isGone) return 'unknown_session';
          return session.refusal ?? { handle, opened };
        },
        send: async ([message], _, group) => {
          asked.push({ method: String(message?.method), ...(group?.leases && { leases: group.leases }) });
          return undefined;
        },
        forget: () => {
          session.isGone = false;
        },
        release: () => {
          isReleased = true;
        },
      },
      forwarded: undefined,
      topic: 'topic',
      name: 'me',
    });
  const listener = { start, close: () => subscriptions.close(), isReleased: () => isReleased };
  const tell = (text: Buffer): void => void store.changes.publish('topic', text);
  const heard = (): string[] =>
    (reply.sink?.messages ?? []).map(({ method, params, result }) => {
      const id = (params ?? result)._meta[key];
      return `${id} ${method ?? 'result'} ${JSON.stringify(params?.notifications ?? params?.uri ?? '')}`;
    });
  return { listener, reply, asked, session, tell, heard };
}

const acknowledged = (filter: object): string => `L notifications/subscriptions/acknowledged ${JSON.stringify(filter)}`;
const toolsChanged = 'L notifications/tools/list_changed ""';

describe('a modern subscription at a legacy server', () => {
  it('[R5.01] [R5.03] [R5.04] begins with an acknowledgement of what the server supports, and delivers that alone', async () => {
    const { listener, tell, heard, asked } = createListener(
      {
        ...{ toolsListChanged: true, resourcesListChanged: true },
        resourceSubscriptions: ['a:b', 'refused', 'c:d'],
      },
      { refuses: ['refused'] },
    );
    const started = listener.start();
    tell(tools); // before it is acknowledged
    await started;
    for (const text of [change('prompts/list_changed'), updated('a:b'), updated('a:bc'), updated('refused')])
      tell(text);
    expect(heard()).toEqual([
      acknowledged({ toolsListChanged: true, resourceSubscriptions: ['a:b', 'c:d'] }),
      toolsChanged,
      'L notifications/resources/updated "a:b"',
    ]);
    expect(asked.map(({ method, uri }) => [method, uri])).toEqual([
      ['resources/subscribe', 'a:b'],
      ['resources/subscribe', 'refused'],
      ['resources/subscribe', 'c:d'],
    ]);
  });

  it('[R5.06] is cancelled in the session when its client leaves, and gets nothing more', async () => {
    const { listener, tell, heard, asked, reply } = createListener({ resourceSubscriptions: ['a:b'] });
    await listener.start();
    reply.leave();
    await vi.advanceTimersByTimeAsync(0);
    tell(updated('a:b'));
    expect(heard()).toHaveLength(1);
    expect(asked.map(({ method }) => method)).toEqual(['resources/subscribe', 'ping']);
    expect(asked[1]).toEqual({ method: 'ping', leases: 'end' });
    expect(listener.isReleased()).toBe(true);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toHaveLength(2);
  });

  it('[R5.06] renews its leases in the session every half minute', async () => {
    const { listener, asked } = createListener({ resourceSubscriptions: ['a:b'] });
    await listener.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked.slice(1)).toEqual(Array(2).fill({ method: 'ping' }));
  });

  it('[R5.09] is opened again if its session is lost, and reports everything as changed', async () => {
    const { listener, heard, asked, session } = createListener({
      toolsListChanged: true,
      resourceSubscriptions: ['a:b'],
    });
    await listener.start();
    session.isGone = true;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(asked.map(({ method }) => method)).toEqual(['resources/subscribe', 'resources/subscribe']);
    expect(heard().slice(1)).toEqual([toolsChanged, 'L notifications/resources/updated "a:b"']);
  });

  it('[R5.09] looks for its session as soon as anything may have changed, and no more often then', async () => {
    const { listener, tell, heard, asked, session } = createListener({ resourceSubscriptions: ['a:b'] });
    await listener.start();
    session.isGone = true;
    tell(Buffer.alloc(0)); // as the next owner of a lost session does
    await vi.advanceTimersByTimeAsync(2_000);
    expect(asked.map(({ method }) => method)).toEqual(['resources/subscribe', 'resources/subscribe']);
    expect(heard().slice(1)).toEqual(Array(2).fill('L notifications/resources/updated "a:b"'));
    for (let n = 0; n < 100; n++) {
      tell(Buffer.alloc(0));
      await vi.advanceTimersByTimeAsync(100);
    }
    const pings = asked.length - 2;
    expect(pings).toBeGreaterThanOrEqual(4);
    expect(pings).toBeLessThanOrEqual(20);
  });

  it('[R5.09] keeps a resource that the next session cannot subscribe now, and asks again', async () => {
    const { listener, tell, heard, asked, session } = createListener({ resourceSubscriptions: ['a:b'] });
    await listener.start();
    session.isGone = true;
    session.fault = 'outcome_unknown';
    await vi.advanceTimersByTimeAsync(30_000);
    session.fault = undefined;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(asked.map(({ method }) => method)).toEqual(Array(3).fill('resources/subscribe'));
    expect(heard().slice(1)).toEqual(Array(2).fill('L notifications/resources/updated "a:b"'));
    tell(updated('a:b'));
    expect(heard()).toHaveLength(4);
  });

  it('reports everything that it covers when anything may have changed', async () => {
    const { listener, tell, heard } = createListener({ toolsListChanged: true, promptsListChanged: true });
    await listener.start();
    tell(Buffer.alloc(0));
    tell(Buffer.alloc(70_000));
    const all = [toolsChanged, 'L notifications/prompts/list_changed ""'];
    expect(heard().slice(1)).toEqual([...all, ...all]);
  });

  it('ends with a result under its own id when the gateway ends', async () => {
    const { listener, heard, reply } = createListener({ toolsListChanged: true });
    await listener.start();
    listener.close();
    expect(heard().at(-1)).toBe('L result ""');
    expect(reply.sink?.state).toBe('ended');
  });

  it('is refused if there is no session', async () => {
    const { listener, session, reply } = createListener({ toolsListChanged: true });
    session.refusal = 'server_start_failed';
    await listener.start();
    expect(reply.given).toMatchObject({ kind: 'fault', reason: 'server_start_failed' });
  });
});
