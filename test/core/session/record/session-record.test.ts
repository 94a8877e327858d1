import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Adoption } from '../../../../src/core/session/record/adoption.ts';
import type { LogState, SessionRecord, SessionRecords } from '../../../../src/core/store/session-records.ts';
import type { Store } from '../../../../src/core/store/store.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { aRecord } from '../../../contract/log-writer.ts';
import { readMessage } from '../../../support/fake-backend.ts';
import { createCore } from '../core-fixture.ts';
import { createServer } from '../session-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const key = 'k';
const epoch = 9;
const text = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize' };
const initialized = text({ jsonrpc: '2.0', id: 0, result: {} });
const nothing: LogState = { tails: new Map(), newestStream: -1, pending: [] };
const away = (): StoreUnavailable => new StoreUnavailable('unreachable');

/** A call of the store that waits for the test to say how it went. */
interface Asked {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads arguments of every shape
  readonly args: readonly any[];
  answer(value?: unknown): Promise<void>;
  fail(cause: Error): Promise<void>;
}

function createFixture(adopted?: Adoption) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const asked: Asked[] = [];
  const failed: unknown[] = [];
  const sessions = new Proxy({} as SessionRecords, {
    get:
      (_, method: string) =>
      (...args: unknown[]) =>
        new Promise((resolve, reject) => {
          const settled = async (): Promise<void> => void (await vi.advanceTimersByTimeAsync(0));
          asked.push({
            method,
            args,
            answer(value) {
              resolve(value);
              return settled();
            },
            fail(cause) {
              reject(cause);
              return settled();
            },
          });
        }),
  });
  const over = new AbortController();
  const stopped = new AbortController();
  const names = { now: 'one' };
  const { session: keeper } = createCore({
    parts: {
      store: { sessions } as unknown as Store,
      server: createServer().server,
      principal: { issuer: 'i', subject: 's', client: 'c' },
      instance: () => ({ name: names.now, term: 0 }),
      storeSignal: stopped.signal,
    },
    start: { epoch, initialize: text(initialize), ...(adopted && { adoption: adopted }) },
  });
  const { client } = keeper;
  vi.spyOn(keeper, 'report').mockImplementation((cause) => void failed.push(cause));
  const create = async (): Promise<void> => {
    const created = keeper.createRecord(initialized, '2025-11-25', over.signal);
    await asked.at(-1)?.answer();
    await created;
  };
  const nth = (n: number): Asked => asked[n] as Asked;
  /** Lets the client subscribe to one more resource. */
  const change = (uri: string): void => {
    client.noteAnswered('resources/subscribe', text({ id: 1, method: 'resources/subscribe', params: { uri } }), {
      isError: false,
    });
    keeper.amendRecord();
  };
  return {
    keeper,
    client,
    asked,
    nth,
    failed,
    names,
    over,
    stopped,
    create,
    change,
    pass: vi.advanceTimersByTimeAsync,
  };
}

describe('the record of a session', () => {
  it('has everything that another owner needs', async () => {
    const { client, nth, create } = createFixture();
    client.noteSent(readMessage({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    await create();
    const record: SessionRecord = {
      server: 's',
      serverDigest: 'd',
      principal: { issuer: 'i', subject: 's', client: 'c' },
      owner: 'one',
      epoch,
      initialize: text(initialize),
      initialized,
      protocolVersion: '2025-11-25',
      ...client.save(),
    };
    expect([nth(0).method, ...nth(0).args]).toEqual(['create', key, record, { followsEnded: false }]);
  });

  it('[P7] is created again unchanged while the store is away', async () => {
    const { keeper, asked, nth, names, over, pass } = createFixture();
    const created = keeper.createRecord(initialized, '2025-11-25', over.signal);
    await nth(0).fail(away());
    names.now = 'two';
    await pass(1_000);
    await nth(1).fail(away());
    await pass(1_000);
    await nth(2).answer();
    await created;
    expect(asked.map(({ args }) => args[1])).toEqual([nth(0).args[1], nth(0).args[1], nth(0).args[1]]);
  });

  it('fails if it belongs to somebody else, or if the store is away until nobody waits', async () => {
    const { keeper, asked, nth, over, pass } = createFixture();
    const created = keeper.createRecord(initialized, '2025-11-25', over.signal);
    const cause = new Error('exists');
    await Promise.all([expect(created).rejects.toBe(cause), nth(0).fail(cause)]);
    const late = keeper.createRecord(initialized, '2025-11-25', over.signal);
    const rejected = expect(late).rejects.toBeInstanceOf(StoreUnavailable);
    await nth(1).fail(away());
    over.abort();
    await rejected;
    await pass(60_000);
    expect(asked).toHaveLength(2);
  });

  it('is registered under the instance’s current name, with the stored state', async () => {
    const { keeper, client, nth, names, create } = createFixture();
    await create();
    names.now = 'two';
    client.noteSent(readMessage({ jsonrpc: '2.0', method: 'notifications/initialized' }));
    const registered = keeper.registerRecord(12, nothing);
    await nth(1).answer('fenced');
    expect(await registered).toBe('fenced');
    const [of, record, tail, log] = nth(1).args;
    expect([of, tail, log]).toEqual([key, 12, nothing]);
    expect(record).toMatchObject({ owner: 'two', epoch, initialized, ...client.save() });
  });

  it('of an adopted session keeps the server’s answer to initialize', async () => {
    const record = aRecord({ initialized, protocolVersion: '2025-06-18' });
    const { keeper, nth } = createFixture({ record, log: nothing, calls: [], serverRequests: [], afterCheckpoint: [] });
    void keeper.registerRecord(0, nothing);
    expect(nth(0).args[1]).toMatchObject({ initialized, protocolVersion: '2025-06-18', epoch, server: 's' });
  });

  it('is released and ended under its epoch', async () => {
    const { keeper, asked, create } = createFixture();
    await create();
    void keeper.releaseRecord();
    void keeper.endRecord();
    expect(asked.slice(1).map(({ method, args }) => [method, ...args])).toEqual([
      ['release', key, epoch],
      ['end', key, epoch],
    ]);
  });

  it('is ended even if nobody waits for that, until the gateway stops', async () => {
    const { keeper, asked, nth, over, stopped, create, pass } = createFixture();
    await create();
    over.abort();
    const ended = keeper.endRecord();
    const rejected = expect(ended).rejects.toBeInstanceOf(StoreUnavailable);
    await nth(1).fail(away());
    await pass(1_000);
    await nth(2).fail(away());
    stopped.abort();
    await rejected;
    await pass(60_000);
    expect(asked).toHaveLength(3);
  });
});

describe('a change of the client state in a session record', () => {
  it('[C-17] is written as an amendment, and changes during it make one more, of which the newest wins', async () => {
    const { client, asked, nth, create, change } = createFixture();
    await create();
    change('a:1');
    expect([nth(1).method, ...nth(1).args]).toEqual(['amend', key, epoch, client.save()]);
    change('a:2');
    change('a:3');
    expect(asked).toHaveLength(2);
    await nth(1).answer('done');
    expect(asked).toHaveLength(3);
    expect(nth(2).args[2]).toEqual(client.save());
    await nth(2).answer('done');
    expect(asked).toHaveLength(3);
    change('a:4');
    expect(nth(3).args[2]).toEqual(client.save());
  });

  it('[C-16] writes the large part again only if that has changed', async () => {
    const { client, nth, create, change, keeper } = createFixture();
    await create();
    change('a:1');
    await nth(1).answer('done');
    client.getCursor = { epoch, seq: 7 };
    keeper.amendRecord();
    const { clientState, clientSaid } = client.save();
    expect(nth(2).args[2]).toEqual({ clientState });
    await nth(2).answer('no_record'); // it may be registered without what was said last
    change('a:2');
    await nth(3).answer('done');
    expect(nth(3).args[2]).toEqual(client.save());
    expect(client.save().clientSaid).not.toBe(clientSaid);
  });

  it('[P7] waits for a store that is away, and the newest state is stored in the end', async () => {
    const { client, nth, asked, create, change, pass } = createFixture();
    await create();
    change('a:1');
    await nth(1).fail(away());
    change('a:2');
    await pass(1_000);
    await nth(2).answer('done');
    await nth(3).answer('done');
    expect([nth(3).args[2], asked.length]).toEqual([client.save(), 4]);
  });

  it('before there is a record goes into the record', async () => {
    const { client, asked, nth, create, change } = createFixture();
    change('a:1');
    expect(asked).toEqual([]);
    await create();
    expect(nth(0).args[1]).toMatchObject(client.save());
  });

  it('is reported if it fails, and the next change is tried', async () => {
    const { nth, failed, create, change } = createFixture();
    await create();
    change('a:1');
    const cause = new Error('wrong type');
    await nth(1).fail(cause);
    expect(failed).toEqual([cause]);
    change('a:2');
    expect(nth(2).method).toBe('amend');
  });

  it.each(['fenced', 'no_record'])('that is refused as %s is somebody else’s to care for', async (outcome) => {
    const { nth, asked, failed, create, change } = createFixture();
    await create();
    change('a:1');
    await nth(1).answer(outcome);
    expect([asked.length, failed]).toEqual([2, []]);
  });
});

describe('a session that was taken over', () => {
  it('[U-01] reports progress once, when its server answers or has been up for a while, and never after its end', async () => {
    const { keeper, asked, nth, pass } = createFixture();
    let isUp = false;
    keeper.awaitProgress(() => isUp);
    await pass(60_000);
    expect(asked).toHaveLength(0); // its server is being started again
    isUp = true;
    await pass(10_000);
    expect([nth(0).method, ...nth(0).args]).toEqual(['confirmTakeover', key, epoch]);
    keeper.confirmProgress();
    await pass(60_000);
    expect(asked).toHaveLength(1);

    const answered = createFixture();
    answered.keeper.awaitProgress(() => false);
    answered.keeper.confirmProgress();
    expect(answered.asked).toHaveLength(1);

    const ended = createFixture();
    ended.keeper.awaitProgress(() => true);
    ended.keeper.stopProof();
    ended.keeper.confirmProgress();
    await ended.pass(60_000);
    expect(ended.asked).toHaveLength(0);
  });
});
