import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { readGatewayMessage } from '../../../src/core/protocol/message/message.ts';
import { anonymous, type Principal } from '../../../src/core/protocol/principal.ts';
import type { AccountLimits } from '../../../src/core/quota/account.ts';
import { Quotas } from '../../../src/core/quota/quotas.ts';
import type { RequestPermit } from '../../../src/core/quota/request-permit.ts';
import { createMemoryStore } from '../../../src/core/store/memory/memory-store.ts';
import type { Rates } from '../../../src/core/store/shared/shared-data.ts';
import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';

const [alice, bob] = ['alice', 'bob'].map((subject) => ({ issuer: 'i', subject, client: '' })) as [
  Principal,
  Principal,
];
const local = { isRemote: false };
const remote = { isRemote: true };
const ping = readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}'));
const pingBytes = ping.text.length;

interface FixtureOptions {
  readonly heldBytes?: () => number;
  readonly own?: AccountLimits;
  readonly all?: AccountLimits;
  readonly rates?: Rates;
}

function createFixture({ own = {}, all = {}, rates, heldBytes = () => 0 }: FixtureOptions = {}) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const store = createMemoryStore({ maxEvents: 1, maxBytes: 1, maxAgeMs: 1_000 });
  onTestFinished(() => store.close());
  const failed = vi.fn();
  const open = (): Quotas => new Quotas({ own, all, heldBytes, rates: rates ?? store.rates, onFailed: failed });
  return { quotas: open(), open, failed };
}

/** Enters, and throws if refused. */
function enter(quotas: Quotas, principal: Principal, bytes = 0): RequestPermit {
  const visit = quotas.admitRequest(principal, bytes);
  if (typeof visit === 'string') throw new Error(visit);
  return visit;
}

/** How many requests are let in, of many that come at once and are answered. */
function countLetIn(quotas: Quotas, principal: Principal, of = 100): number {
  let count = 0;
  for (let n = 0; n < of; n++) {
    const visit = quotas.admitRequest(principal, 0);
    if (typeof visit === 'string') continue;
    visit.release();
    count += 1;
  }
  return count;
}

describe('[S-21] [P8] the bytes of all principals', () => {
  const all = { bytes: 1_000_000 };

  it('are not all for large requests: those of others have a part', () => {
    const { quotas } = createFixture({ all });
    const large = enter(quotas, alice, 700_000);
    expect(quotas.admitRequest(alice, 100_000)).toBe('gateway_busy');
    for (let n = 0; n < 18; n += 1) enter(quotas, bob, 16_000);
    expect(quotas.admitRequest(bob, 16_000)).toBe('gateway_busy');
    large.release();
    enter(quotas, alice, 400_000);
  });

  it('may be used by a single request', () => {
    const { quotas } = createFixture({ all });
    enter(quotas, alice, 1_000_000);
  });

  it('also count what waits for servers, when its clients have left', () => {
    let held = 740_000;
    const { quotas } = createFixture({ all, heldBytes: () => held });
    expect(quotas.admitRequest(alice, 20_000)).toBe('gateway_busy');
    enter(quotas, alice, 10_000);
    held = 0;
    enter(quotas, alice, 700_000);
  });
});

describe('[S20] what a principal has open', () => {
  it('is refused beyond the quota, for it alone, until something is over', () => {
    const { quotas } = createFixture({ own: { streams: 2 } });
    const [first] = [enter(quotas, alice), enter(quotas, alice)];
    expect(quotas.admitRequest({ ...alice }, 0)).toBe('quota_streams');
    enter(quotas, bob);
    first?.release();
    first?.release(); // counts once
    enter(quotas, alice);
    expect(quotas.admitRequest(alice, 0)).toBe('quota_streams');
  });

  it('holds bytes from when it is let in until it is over, as many as there are when they are known', () => {
    const { quotas } = createFixture({ own: { bytes: 1_000 }, all: { bytes: 1_500 } });
    const long = enter(quotas, alice, 1_000);
    expect([quotas.admitRequest(alice, 1), quotas.admitRequest(bob, 501)]).toEqual(['quota_bytes', 'gateway_busy']);
    long.countMessages([ping]);
    const rest = enter(quotas, alice, 1_000 - pingBytes);
    expect(quotas.admitRequest(alice, 1)).toBe('quota_bytes');
    long.release();
    enter(quotas, alice, pingBytes);
    rest.release();
    rest.countMessages([ping]); // too late: the client has gone while its body came
    enter(quotas, alice, 1_000 - pingBytes);
    expect(quotas.admitRequest(alice, 1)).toBe('quota_bytes');
  });

  it('holds the bytes of messages on its connection until they are taken, or it is closed', () => {
    const { quotas } = createFixture({ own: { bytes: 2 * pingBytes } });
    const visit = enter(quotas, alice);
    const [over] = [visit.admitNext([ping]), visit.admitNext([ping])];
    expect(visit.admitNext([ping])).toBe('quota_bytes');
    if (typeof over !== 'function') throw new Error('refused');
    over();
    over(); // counts once
    expect(visit.admitNext([ping, ping])).toBe('quota_bytes');
    expect(typeof visit.admitNext([ping])).toBe('function');
    visit.release();
    over();
    enter(quotas, alice, 2 * pingBytes);
    expect(quotas.admitRequest(alice, 1)).toBe('quota_bytes');
  });
});

describe('[S20] requests of a principal', () => {
  const requests = { burst: 10, everyMs: 100 };

  it('are refused beyond the rate, for it alone; what is refused costs nothing', () => {
    const { quotas } = createFixture({ own: { requests } });
    expect(countLetIn(quotas, alice)).toBe(10);
    expect(countLetIn(quotas, bob)).toBe(10);
    vi.advanceTimersByTime(300);
    expect(countLetIn(quotas, alice)).toBe(3);
    expect(quotas.admitRequest(alice, 0)).toBe('quota_requests');
  });

  it('are all messages of a batch, and on a connection', () => {
    const { quotas } = createFixture({ own: { requests } });
    const visit = enter(quotas, alice);
    visit.countMessages(Array(4).fill(ping));
    expect(typeof visit.admitNext([ping, ping])).toBe('function');
    expect(typeof visit.admitNext([])).toBe('function');
    expect(countLetIn(quotas, alice)).toBe(3);
    expect(visit.admitNext([ping])).toBe('quota_requests');
  });

  it('of instances that share a store are counted together: what one lets in too much, all wait for', async () => {
    const { quotas, open } = createFixture({ own: { requests } });
    const other = open();
    expect([countLetIn(quotas, alice), countLetIn(other, alice)]).toEqual([10, 10]);
    let count = 0;
    for (let ms = 0; ms < 10_000; ms += 50) {
      await vi.advanceTimersByTimeAsync(50);
      count += countLetIn(quotas, alice, 3) + countLetIn(other, alice, 3);
    }
    // 100 in 10 s, less the 10 that were too many; at most those of half a second more, which the other one hears of later.
    expect(count).toBeGreaterThanOrEqual(80);
    expect(count).toBeLessThanOrEqual(105);
  });

  it('with the store away, are counted by each instance for itself, and no fault is made of it', async () => {
    const use = vi.fn(() => Promise.reject(new StoreUnavailable('unreachable')));
    const { quotas, failed } = createFixture({ own: { requests }, rates: { use } });
    expect(countLetIn(quotas, alice)).toBe(10);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(countLetIn(quotas, alice)).toBe(10);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(use).toHaveBeenCalledTimes(2);
    expect(failed).not.toHaveBeenCalled();
  });

  it('ask the store twice in a second, however many they are', async () => {
    const use = vi.fn(async () => 0);
    const { quotas } = createFixture({ own: { requests: { burst: 1e6, everyMs: 0.001 } }, rates: { use } });
    for (let ms = 0; ms < 5_000; ms += 10) {
      countLetIn(quotas, alice, 20);
      await vi.advanceTimersByTimeAsync(10);
    }
    expect(use.mock.calls.length).toBeGreaterThanOrEqual(8);
    expect(use.mock.calls.length).toBeLessThanOrEqual(10);
  });
});

describe('[S20] sessions of a principal', () => {
  it('are refused beyond the quota; one that is ending counts no more, but its process does', () => {
    const { quotas } = createFixture({ own: { sessions: 2, processes: 3 } });
    const of = { server: local, principal: alice };
    const seats = [quotas.acquire(of), quotas.acquire(of)];
    expect(quotas.refusalOf(of)).toBe('quota_sessions');
    expect(quotas.refusalOf({ ...of, principal: bob })).toBeUndefined();
    for (const seat of seats) seat.ending();
    expect(quotas.refusalOf(of)).toBeUndefined();
    quotas.acquire(of);
    expect(quotas.refusalOf(of)).toBe('quota_processes');
    seats[0]?.ended();
    expect(quotas.refusalOf(of)).toBeUndefined();
  });

  it('have no process if the server is remote, or all share one', () => {
    const { quotas } = createFixture({ own: { processes: 1, starts: { burst: 1, everyMs: 1_000 } } });
    for (const server of [remote, { ...local, sharesProcess: true }]) {
      const seat = quotas.acquire({ server, principal: alice });
      seat.started();
    }
    expect(quotas.refusalOf({ server: local, principal: alice })).toBeUndefined();
  });

  it('may start so many processes in a time; those that were lost and started again count, too', () => {
    const starts = { burst: 3, everyMs: 1_000 };
    const { quotas } = createFixture({ own: { starts }, all: { starts: { burst: 5, everyMs: 1_000 } } });
    const seat = quotas.acquire({ server: local, principal: alice });
    for (let n = 0; n < 4; n++) seat.started();
    expect(quotas.refusalOf({ server: local, principal: alice })).toBe('quota_starts');
    expect(quotas.refusalOf({ server: remote, principal: alice })).toBeUndefined();
    expect(quotas.refusalOf({ server: local, principal: bob })).toBeUndefined();
    quotas.acquire({ server: local, principal: bob }).started();
    expect(quotas.refusalOf({ server: local, principal: bob })).toBe('too_many_starts');
    vi.advanceTimersByTime(1_000);
    expect(quotas.refusalOf({ server: local, principal: bob })).toBeUndefined();
    expect(quotas.refusalOf({ server: local, principal: alice })).toBe('quota_starts');
    vi.advanceTimersByTime(1_000);
    expect(quotas.refusalOf({ server: local, principal: alice })).toBeUndefined();
  });
});

describe('quotas', () => {
  it('are only those of all for who is nobody in particular', () => {
    const one = { streams: 1, sessions: 1, bytes: 1, requests: { burst: 1, everyMs: 1_000 } };
    const { quotas } = createFixture({ own: one, all: { requests: { burst: 3, everyMs: 1_000 } } });
    const visits = Array.from({ length: 4 }, () => quotas.admitRequest(anonymous, 100));
    expect(visits.map((visit) => (typeof visit === 'string' ? visit : 'in'))).toEqual([
      ...['in', 'in', 'in'],
      'gateway_busy',
    ]);
    quotas.acquire({ server: local, principal: anonymous });
    expect(quotas.refusalOf({ server: local, principal: anonymous })).toBeUndefined();
  });

  it('keep apart principals whose parts look alike', () => {
    const { quotas } = createFixture({ own: { streams: 1 } });
    for (const [issuer, subject, client] of [
      ['ab', 'c', ''],
      ['a', 'bc', ''],
      ['a', 'b', 'c'],
      ['', 'abc', ''],
      ['1 1 a', 'b', ''],
    ] as const) {
      enter(quotas, { issuer, subject, client });
    }
  });

  it('count nothing where there are none', () => {
    for (const quotas of [createFixture().quotas, new Quotas()]) expect(countLetIn(quotas, alice, 1_000)).toBe(1_000);
  });
});
