import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { CallStream } from '../../../../src/features/eras/modern-on-legacy/call-stream.ts';
import { createGroups, type GroupsFixture, responseOf } from './groups-fixture.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
type Json = any;

const asking = { capabilities: { elicitation: {} } };

/** A server whose tool asks once, and a store that is away when the test says so. */
function createAsking(more: GroupsFixture = {}) {
  let isAway = false;
  let called: unknown;
  const begun: unknown[] = [];
  const fixture = createGroups({
    isolation: 'principal',
    ...more,
    isAway: () => isAway,
    onSend: ({ id, method, result }, backend) => {
      if (method === 'tools/call') {
        begun.push(id);
        called = id;
        backend.says({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: { message: 'name?' } });
      } else if (result !== undefined)
        backend.says({ jsonrpc: '2.0', id: called, result: { content: [{ type: 'text', text: 'done' }] } });
    },
  });
  const call = (params: object = {}, of: object = asking): Promise<Json> =>
    responseOf(fixture.ask('tools/call', { ...of, params: { name: 'x', ...params } }));
  const setAway = (now: boolean): void => {
    isAway = now;
  };
  return { ...fixture, begun, call, setAway };
}

const retryOf = ({ result }: Json): object => ({
  inputResponses: Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, { action: 'accept' }])),
  requestState: result.requestState,
});

const reasonOf = ({ error }: Json): string => error.data.reason;

describe('[U-03] [P7] while the store is away, a modern call', () => {
  it('that may require input is refused before the server gets it', async () => {
    const { call, setAway, begun } = createAsking();
    setAway(true);
    expect([reasonOf(await call()), begun]).toEqual(['store_unavailable', []]);
    setAway(false);
    expect((await call()).result.resultType).toBe('input_required');
  });

  it('takes a round of input on the instance that holds its session, if the state can be read', async () => {
    const { call, store } = createAsking();
    const asked = await call();
    store.values.get = () => Promise.reject(new StoreUnavailable('unreachable'));
    store.values.keep = () => Promise.reject(new StoreUnavailable('unreachable'));
    expect((await call(retryOf(asked))).result.content[0].text).toBe('done');
  });

  it('whose state cannot be read has its answers refused, and goes on when they come again', async () => {
    const { call, setAway, begun } = createAsking();
    const asked = await call();
    setAway(true);
    expect(reasonOf(await call(retryOf(asked)))).toBe('input_not_taken');
    setAway(false);
    expect((await call(retryOf(asked))).result.content[0].text).toBe('done');
    expect(begun).toHaveLength(1);
  });

  it('whose session is gone is not told that nothing reached the server', async () => {
    const { call, fake, store } = createAsking({ onBackendExit: 'end' });
    const asked = await call();
    fake.backend.ends();
    store.values.get = () => Promise.reject(new StoreUnavailable('unreachable'));
    expect(reasonOf(await call(retryOf(asked)))).toBe('outcome_unknown');
  });
});

it('[P3] a modern call whose way to its session is lost is cancelled there, since its client cannot answer any more', async () => {
  const { call, fake } = createAsking();
  const post = CallStream.prototype.post;
  const spy = vi.spyOn(CallStream.prototype, 'post').mockImplementation(async function (this: CallStream, ...args) {
    await post.apply(this, args);
    return 'outcome_unknown';
  });
  onTestFinished(() => spy.mockRestore());
  expect(reasonOf(await call())).toBe('outcome_unknown');
  const cancelled = await fake.backend.sent.next(({ method }) => method === 'notifications/cancelled');
  const called = fake.backend.sent.items.find(({ method }) => method === 'tools/call');
  expect(cancelled.params.requestId).toBe(called?.id);
});
