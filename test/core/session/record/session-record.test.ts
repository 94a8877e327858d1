import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { SessionRecords } from '../../../../src/core/store/session-records.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { openSession } from '../one-session.ts';
import { initialize, request, response } from '../session-fixture.ts';
import { adopt } from './adoption-fixture.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const key = 'k';
const epoch = 5;
const handshake = { protocolVersion: '2025-11-25', capabilities: {} };
const initialized = response(0, handshake);

/** A call of the store, and how it goes. */
interface Asked {
  readonly method: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads arguments of every shape
  readonly args: readonly any[];
}

/** What happens to the next change of a record; undefined for what the store does. */
type Fate = (() => Promise<unknown>) | undefined;
const isAway = (): Promise<never> => Promise.reject(new StoreUnavailable('unreachable'));
const isRefused =
  (cause: Error): Fate =>
  () =>
    Promise.reject(cause);

/** A session that is about to open, and the changes of its record. */
async function begin(...fates: Fate[]) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const asked: Asked[] = [];
  const one = await openSession({
    handshake: null,
    wrap: (store) => ({
      ...store,
      sessions: new Proxy(store.sessions, {
        get:
          (target, method: keyof SessionRecords) =>
          (...args: unknown[]) => {
            asked.push({ method, args });
            const fate = fates.shift();
            return fate === undefined ? Reflect.apply(target[method], target, args) : fate();
          },
      }),
    }),
  });
  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const welcome = async (): Promise<void> => {
    one.backend.says(initialized);
    await pass();
  };
  /** The client subscribes to one more resource. */
  const subscribe = async (uri: string): Promise<void> => {
    one.post([request(uri, 'resources/subscribe', { uri })]);
    one.backend.says(response(uri));
    await pass();
  };
  const save = () => one.session.client.save();
  return { ...one, asked, fates, pass, welcome, subscribe, save };
}

/** One that is open. */
async function open() {
  const one = await begin();
  await one.welcome();
  one.asked.length = 0;
  return one;
}

describe('the record of a session', () => {
  it('has everything that another owner needs', async () => {
    const one = await open();
    one.post([{ jsonrpc: '2.0', method: 'notifications/initialized' }]);
    await one.pass();
    expect(await one.store.sessions.find(key)).toEqual({
      ...{ server: 's', serverDigest: 'd', principal: one.session.principal, owner: 'i', epoch },
      ...{ initialize: Buffer.from(JSON.stringify(initialize)), initialized: Buffer.from(JSON.stringify(initialized)) },
      ...{ protocolVersion: '2025-11-25', ...one.save() },
    });
  });

  it('[P7] is created again unchanged while the store is away, and the client waits for it', async () => {
    const one = await begin(isAway, isAway);
    await one.welcome();
    expect(one.opening.given).toBeUndefined();
    await one.pass(2_000);
    expect(one.opening.given).toMatchObject({ kind: 'json', json: initialized });
    expect(one.asked.map(({ method, args }) => [method, args[1]])).toEqual(
      Array.from({ length: 3 }, () => ['create', one.asked[0]?.args[1]]),
    );
  });

  it('that belongs to somebody else makes initialize fail', async () => {
    const one = await begin(isRefused(new Error('exists')));
    await one.welcome();
    expect(one.opening.given).toMatchObject({ kind: 'fault', reason: 'internal' });
  });

  it('makes initialize fail if the store is away for too long', async () => {
    const one = await begin(...Array.from({ length: 100 }, () => isAway));
    await one.welcome();
    // The limit of storeWaitMs is a signal of Node.js, which knows no clock of a test.
    await new Promise((resolve) => AbortSignal.timeout(1_100).addEventListener('abort', resolve));
    await one.pass();
    expect(one.opening.given).toMatchObject({ kind: 'fault', reason: 'store_unavailable' });
    const tried = one.asked.length;
    await one.pass(60_000);
    expect(one.asked).toHaveLength(tried);
  });

  it('is registered with what was said last', async () => {
    const one = await open();
    await one.subscribe('a:1');
    expect(await one.session.log.register()).toBe('registered');
    const [of, record] = one.asked.find(({ method }) => method === 'register')?.args ?? [];
    expect([of, record]).toMatchObject([key, { owner: 'i', epoch, ...one.save() }]);
  });

  it('of an adopted session keeps the server’s answer to initialize', async () => {
    const { session, store } = await adopt({ protocolVersion: '2025-06-18' });
    const before = await store.sessions.find(key);
    await session.log.register();
    expect(await store.sessions.find(key)).toMatchObject({
      initialized: before?.initialized,
      protocolVersion: '2025-06-18',
    });
  });

  it.each([
    ['released', 'release'],
    ['deleted', 'end'],
  ] as const)('is changed under its epoch when the session is %s', async (reason, method) => {
    const one = await open();
    const ended = one.session.end(reason);
    await one.pass(10_000);
    await ended;
    expect(one.asked.filter((each) => each.method === method).map(({ args }) => args)).toEqual([[key, epoch]]);
  });
});

it('the record of a session that has ended is removed, also if the store is away for longer than anybody waits', async () => {
  const one = await open();
  one.fates.push(isAway, isAway, isAway, isAway);
  const ended = one.session.end('deleted');
  await one.pass(60_000);
  await ended;
  expect(one.asked.map(({ method }) => method)).toEqual(Array.from({ length: 5 }, () => 'end'));
  expect(await one.store.sessions.find(key)).toBeUndefined();
});

describe('a change of the client state in a session record', () => {
  it('[C-17] is written as an amendment, and changes during it make one more, of which the newest wins', async () => {
    const one = await open();
    let goOn: (outcome: string) => void = () => undefined;
    one.fates.push(() => new Promise((resolve) => (goOn = resolve)));
    await one.subscribe('a:1');
    expect(one.asked).toEqual([{ method: 'amend', args: [key, epoch, one.save()] }]);
    await one.subscribe('a:2');
    await one.subscribe('a:3');
    expect(one.asked).toHaveLength(1);
    goOn('done');
    await one.pass();
    expect(one.asked).toHaveLength(2);
    expect(one.asked[1]?.args[2]).toEqual(one.save());
    await one.subscribe('a:4');
    expect(one.asked).toHaveLength(3);
  });

  it('[C-16] writes the large part again only if that has changed', async () => {
    const one = await open();
    await one.subscribe('a:1');
    one.session.client.getCursor = { epoch, seq: 7 };
    one.fates.push(async () => 'no_record'); // it may be registered without what was said last
    one.session.amendRecord();
    await one.pass();
    const { clientState, clientSaid } = one.save();
    expect(one.asked.at(-1)?.args[2]).toEqual({ clientState });
    await one.subscribe('a:2');
    expect(one.asked.at(-1)?.args[2]).toEqual(one.save());
    expect(one.save().clientSaid).not.toBe(clientSaid);
  });

  it('[P7] waits for a store that is away, and the newest state is stored in the end', async () => {
    const one = await open();
    one.fates.push(isAway);
    await one.subscribe('a:1');
    await one.subscribe('a:2');
    await one.pass(2_000);
    expect(await one.store.sessions.find(key)).toMatchObject(one.save());
  });

  it('is reported if it fails, and the next change is tried', async () => {
    const one = await open();
    const cause = new Error('wrong type');
    one.fates.push(isRefused(cause));
    await one.subscribe('a:1');
    expect(one.telemetry.failures).toEqual([cause]);
    await one.subscribe('a:2');
    expect(await one.store.sessions.find(key)).toMatchObject(one.save());
  });

  it.each(['fenced', 'no_record'])('that is refused as %s is somebody else’s to care for', async (outcome) => {
    const one = await open();
    one.fates.push(async () => outcome);
    await one.subscribe('a:1');
    await one.pass(60_000);
    expect([one.asked.length, one.telemetry.failures]).toEqual([1, []]);
  });
});

describe('a session that was taken over', () => {
  /** One whose server is not started yet, and how often it has reported progress. */
  async function takeOver() {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const adopted = await adopt();
    const confirmed = vi.spyOn(adopted.store.sessions, 'confirmTakeover');
    const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
    return { ...adopted, confirmed, pass };
  }

  it('[U-01] reports progress once, when its server has been up for a while', async () => {
    const one = await takeOver();
    await one.pass(9_000);
    expect(one.confirmed).not.toHaveBeenCalled();
    await one.pass(60_000);
    expect(one.confirmed.mock.calls).toEqual([[key, one.now]]);
  });

  it('[U-01] reports progress when its server answers', async () => {
    const one = await takeOver();
    one.post(request(1));
    await one.pass(0);
    one.fake.backend.says(response(1));
    await one.pass(0);
    expect(one.confirmed).toHaveBeenCalledOnce();
    await one.pass(60_000);
    expect(one.confirmed).toHaveBeenCalledOnce();
  });

  it('[U-01] reports no progress after its end', async () => {
    const one = await takeOver();
    void one.session.end('deleted');
    await one.pass(60_000);
    expect(one.confirmed).not.toHaveBeenCalled();
  });
});
