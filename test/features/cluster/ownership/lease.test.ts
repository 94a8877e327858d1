import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { LeaseRenewal } from '../../../../src/core/store/instances.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import type { ClusterOptions } from '../../../../src/features/cluster/cluster-parts.ts';
import { Lease, settlingMs } from '../../../../src/features/cluster/ownership/lease.ts';
import { createTelemetry } from '../../../core/session/session-fixture.ts';
import { type Asked, createFakeInstances } from './fake-instances.ts';

vi.mock('node:timers/promises', () => import('../../../support/fake-delay.ts'));

const leaseMs = 6_000;
const renewMs = 2_000;
const marginMs = 1_000;
const away = (): StoreUnavailable => new StoreUnavailable('unreachable');
const held = (fields: Partial<LeaseRenewal> = {}): LeaseRenewal => ({
  held: true,
  dataAgeMs: 50_000,
  storeGeneration: 'b1',
  leaseEndsMs: 60_000,
  ...fields,
});

function createFixture() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const instances = createFakeInstances();
  const told: string[] = [];
  const holds: boolean[] = [];
  const telemetry = createTelemetry();
  const { clusterFailures: failures } = telemetry;
  const limits = { leaseMs, leaseRenewMs: renewMs, leaseMarginMs: marginMs };
  const lease: Lease = new Lease(
    { store: { instances }, limits, telemetry } as unknown as ClusterOptions,
    () => void holds.push(lease.isHeld),
    () => void told.push(`term ${lease.term}`),
  );
  const pass = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
  const settle = async (asked: Asked<LeaseRenewal> | undefined, said: LeaseRenewal | Error = held()): Promise<void> => {
    if (said instanceof Error) asked?.fail(said);
    else asked?.answer(said);
    await pass();
  };
  /** Joins at once; renewals wait for the test. */
  const join = async (said = held()): Promise<void> => {
    lease.start();
    await settle(instances.joins[0], said);
  };
  onTestFinished(async () => {
    instances.automatic.renewal = held();
    void lease.close();
    await pass(renewMs);
  });
  return { lease, instances, told, holds, failures, pass, settle, join };
}

describe('an instance lease', () => {
  it('is not held before the store has confirmed it, and then begins the first registration round', async () => {
    const { lease, instances, told, settle, pass } = createFixture();
    expect([lease.isHeld, lease.term, lease.dataAgeMs]).toEqual([false, 0, 0]);
    lease.start();
    await pass(500);
    expect([lease.isHeld, lease.term, instances.joins.map(({ name }) => name)]).toEqual([false, 0, [lease.name]]);
    await settle(instances.joins[0]);
    expect([lease.isHeld, told]).toEqual([true, ['term 1']]);
  });

  it('[P6] is held from the time the renewal was sent, not answered, and minus the margin', async () => {
    const { lease, instances, settle, join, pass } = createFixture();
    await join();
    await pass(renewMs);
    const [renewal] = instances.renewals;
    expect([instances.renewals.length, renewal?.name]).toEqual([1, lease.name]);
    await pass(2_500);
    await settle(renewal); // 2.5 s after it was sent
    await pass(leaseMs - marginMs - 2_500 - 1);
    expect(lease.isHeld).toBe(true);
    await pass(1);
    expect(lease.isHeld).toBe(false);
  });

  it('[F04] [P6] lapses without an answer in time, and is held again with one that came in time', async () => {
    const { lease, instances, told, settle, join, pass } = createFixture();
    await join();
    await pass(leaseMs - marginMs);
    expect(lease.isHeld).toBe(false);
    const { name } = lease;
    await settle(instances.renewals.at(-1)); // sent after two seconds
    expect([lease.isHeld, lease.name, told]).toEqual([true, name, ['term 1']]);
  });

  it('[F29b] is not held after the process was stopped, even before a check', async () => {
    const { lease, instances, join } = createFixture();
    instances.automatic.renewal = held();
    await join();
    vi.setSystemTime(Date.now() + 10 * leaseMs); // the wall clock says nothing
    expect(lease.isHeld).toBe(true);
    vi.advanceTimersByTime(0);
    const now = performance.now();
    vi.spyOn(performance, 'now').mockReturnValue(now + leaseMs); // nothing ran meanwhile
    onTestFinished(() => void vi.restoreAllMocks());
    expect(lease.isHeld).toBe(false);
  });

  it('[P6] reports when it is held again in the same round, even if it lapsed during a renewal', async () => {
    const { lease, instances, holds, settle, join, pass } = createFixture();
    await join();
    await pass(renewMs);
    await settle(instances.renewals[0]);
    expect(holds).toEqual([]); // it was held all the time
    await pass(leaseMs - marginMs);
    expect(lease.isHeld).toBe(false);
    await settle(instances.renewals[1]); // sent while it was held
    expect(holds).toEqual([true]);
  });

  it('is renewed at an interval that counts from when the last renewal was sent', async () => {
    const { instances, settle, join, pass } = createFixture();
    await join();
    const startedAt = performance.now();
    for (let n = 0; n < 5; n++) {
      await pass(renewMs - (n === 0 ? 0 : 10));
      await pass(10);
      await settle(instances.renewals[n]);
    }
    expect(instances.renewals.map(({ at }) => at - startedAt)).toEqual([1, 2, 3, 4, 5].map((n) => n * renewMs));
  });

  it('has one renewal in flight at a time', async () => {
    const { instances, join, pass } = createFixture();
    await join();
    await pass(10 * renewMs);
    expect(instances.renewals).toHaveLength(1); // who does not answer is not asked more and more
  });

  it('is renewed again soon after a failed renewal', async () => {
    const { lease, instances, failures, settle, join, pass } = createFixture();
    await join();
    await pass(renewMs);
    const cause = away();
    await settle(instances.renewals[0], cause);
    expect(failures).toEqual([cause]);
    await pass(200);
    expect(instances.renewals.length).toBeGreaterThanOrEqual(2);
    await settle(instances.renewals.at(-1));
    const elapsedMs = performance.now() - (instances.renewals.at(-1)?.at ?? 0);
    await pass(leaseMs - marginMs - 1 - elapsedMs);
    expect(lease.isHeld).toBe(true);
  });
});

describe('an instance that lost its lease', () => {
  it('[P6] takes an unused name, and begins a new registration round', async () => {
    const { lease, instances, told, settle, join, pass } = createFixture();
    await join();
    const before = lease.name;
    await pass(renewMs);
    await settle(instances.renewals[0], held({ held: false }));
    expect(lease.isHeld).toBe(false);
    await pass(200);
    expect(instances.joins).toHaveLength(2);
    expect([lease.isHeld, lease.term]).toEqual([false, 1]);
    await settle(instances.joins[1]);
    expect([lease.isHeld, told]).toEqual([true, ['term 1', 'term 2']]);
    expect(lease.name).not.toBe(before);
    expect(instances.joins[1]?.name).toBe(lease.name);
    await pass(renewMs);
    expect(instances.renewals.at(-1)?.name).toBe(lease.name);
  });

  it('takes yet another name if it gets no answer to whether it has joined', async () => {
    const { lease, instances, told, settle, pass } = createFixture();
    lease.start();
    await settle(instances.joins[0], away());
    expect(lease.isHeld).toBe(false);
    await pass(200);
    await settle(instances.joins[1]);
    expect(new Set(instances.joins.map(({ name }) => name)).size).toBe(2);
    expect([lease.name, told]).toEqual([instances.joins[1]?.name, ['term 1']]);
  });
});

describe('a registration round of an instance lease', () => {
  it('joins less often after refusals, since each attempt leaves data behind', async () => {
    const { instances, failures, settle, pass, lease } = createFixture();
    lease.start();
    for (const count of [1, 2, 3]) {
      expect(instances.joins).toHaveLength(count);
      await settle(instances.joins.at(-1), new StoreUnavailable('refused'));
      await pass(renewMs - 1);
      expect(instances.joins).toHaveLength(count);
      await pass(1);
    }
    expect(failures).toHaveLength(2);
    await settle(instances.joins.at(-1));
    expect(lease.isHeld).toBe(true);
  });

  it('[F06] ends when the store has other data than before, although the lease is held', async () => {
    const { lease, instances, told, settle, join, pass } = createFixture();
    await join();
    const { name } = lease;
    await pass(renewMs);
    await settle(instances.renewals[0], held({ storeGeneration: 'b2', dataAgeMs: 0 }));
    await pass(renewMs);
    await settle(instances.renewals[1], held({ storeGeneration: 'b2', dataAgeMs: renewMs }));
    expect([told, lease.name]).toEqual([['term 1', 'term 2'], name]);
  });

  const lost = held({ held: false });

  it('[P6] after a lapse displaces nobody, until its sessions are registered', async () => {
    const { lease, instances, settle, join, pass } = createFixture();
    await join();
    expect(lease.displacesUntilMs).toBe(60_000);
    await pass(renewMs);
    await pass(leaseMs); // no answer: the lease lapses
    await settle(instances.renewals.at(-1), lost);
    await pass(100);
    await settle(instances.joins[1], held({ leaseEndsMs: 70_000 }));
    expect([lease.isHeld, lease.displacesUntilMs, lease.unsettledMs]).toEqual([true, 0, 0]);
    lease.noteRegistered();
    expect(lease.displacesUntilMs).toBe(70_000);
  });

  it('[P6] after a lapse that all data were lost after, waits for an owner that may have taken over in between', async () => {
    const { lease, instances, settle, join, pass } = createFixture();
    await join();
    await pass(renewMs + leaseMs);
    await settle(instances.renewals.at(-1), { ...lost, storeGeneration: 'b2', dataAgeMs: 500 });
    await pass(100);
    await settle(instances.joins[1], held({ storeGeneration: 'b2', dataAgeMs: 600 }));
    expect([lease.isHeld, lease.unsettledMs]).toEqual([true, leaseMs + settlingMs - 600]);
  });

  it('[P6] waits for nobody where its lease was valid until all data were lost', async () => {
    const { lease, instances, settle, join, pass } = createFixture();
    await join();
    await pass(renewMs);
    await settle(instances.renewals[0], { ...lost, storeGeneration: 'b2', dataAgeMs: 500 });
    await pass(100);
    await settle(instances.joins[1], held({ storeGeneration: 'b2', dataAgeMs: 600 }));
    expect([lease.isHeld, lease.unsettledMs, lease.displacesUntilMs]).toEqual([true, 0, 60_000]);
  });

  it('ends on request, but not before the first round', async () => {
    const { lease, told, join } = createFixture();
    lease.noteRecovery();
    await join();
    lease.noteRecovery();
    expect(told).toEqual(['term 1', 'term 2']);
  });

  it('knows the least age of the store’s data', async () => {
    const { lease, join, pass } = createFixture();
    await join(held({ dataAgeMs: 300 }));
    await pass(500);
    expect([lease.dataAgeMs, lease.unconfirmedMs]).toEqual([800, 500]);
  });
});

describe('an instance that stops and has a lease', () => {
  it('releases its lease at once', async () => {
    const { lease, instances, join, pass } = createFixture();
    await join();
    await lease.close();
    expect([lease.isHeld, instances.left]).toEqual([false, [lease.name]]);
    await pass(10 * renewMs);
    expect(instances.renewals.length).toBeLessThanOrEqual(1);
  });

  it('has nothing to wait for if it never joined', async () => {
    const { lease, instances, settle, pass } = createFixture();
    lease.start();
    await settle(instances.joins[0], away());
    await lease.close();
    await pass(10_000);
    expect([instances.joins.length, instances.left]).toEqual([1, []]);
  });
});
