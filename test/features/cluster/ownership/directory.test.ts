import { describe, expect, it, vi } from 'vitest';
import type { Session } from '../../../../src/core/session/session.ts';
import { StoreUnavailable } from '../../../../src/core/store/store-unavailable.ts';
import { aRecord } from '../../../contract/log-writer.ts';
import { createDirectory, key, leaseMs, principal, server, settledMs, visitor } from './directory-fixture.ts';

const { epoch } = aRecord();
const atOwner = { instance: 'owner', epoch };
const lost = { ...atOwner, why: 'lost', times: 0 } as const;
const gone = { ...atOwner, why: 'unsent', times: 0 } as const;
/** It has said so many times in a row that it does not have the session. */
const denied = (times: number) => ({ ...atOwner, why: 'moved', times }) as const;

describe('the directory’s check of who may use a session', () => {
  it('admits its creator, at its server, in a served revision', async () => {
    const { directory } = await createDirectory();
    expect(await directory.admits(visitor)).toBe('yes');
    for (const version of ['2025-11-25', '2025-06-18'])
      expect(await directory.admits({ ...visitor, version })).toBe('yes');
    expect(await directory.admits({ ...visitor, version: '1999-01-01' })).toEqual({ fault: 'unsupported_version' });
  });

  it('[P11] refuses everybody else as if the session did not exist', async () => {
    const { directory } = await createDirectory();
    const unknown = { fault: 'unknown_session' };
    for (const part of ['issuer', 'subject', 'client']) {
      const other = { ...principal, [part]: 'x' };
      expect(await directory.admits({ ...visitor, principal: other, version: '1999-01-01' })).toEqual(unknown);
    }
    expect(await directory.admits({ ...visitor, server: { ...server, name: 'other', digest: 'x' } })).toEqual(unknown);
  });

  it('refuses at an instance with another configuration of the server', async () => {
    const { directory } = await createDirectory();
    const fault = { fault: 'other_configuration' };
    expect(await directory.admits({ ...visitor, server: { ...server, digest: 'x' } })).toEqual(fault);
  });

  it('looks first at the sessions that are held here', async () => {
    const { directory, here, find } = await createDirectory('no record');
    const session = { isReady: true, server, principal, protocolVersion: '2025-11-25' } as unknown as Session;
    here.set(key, session);
    expect(await directory.admits(visitor)).toBe('yes');
    expect(find).not.toHaveBeenCalled();
  });

  it('[B11b] makes the same store reads for somebody else’s session as for one that does not exist', async () => {
    const other = { ...visitor, principal: { ...principal, subject: 'x' } };
    const asked = async ({ directory, find, state }: Awaited<ReturnType<typeof createDirectory>>) => {
      find.mockClear();
      const refresh = vi.spyOn(state, 'refresh');
      expect(await directory.admits(other)).toEqual({ fault: 'unknown_session' });
      return [find.mock.calls.length, refresh.mock.calls.length];
    };
    const nowhere = await asked(await createDirectory('no record'));
    const here = await createDirectory('no record');
    const session = { isReady: true, server, principal, protocolVersion: '2025-11-25' } as unknown as Session;
    here.here.set(key, session);
    const known = await createDirectory();
    await known.directory.admits(visitor);
    expect([await asked(here), await asked(await createDirectory()), await asked(known)]).toEqual([
      nowhere,
      nowhere,
      nowhere,
    ]);
  });

  it('knows the revision, which says whether streams are primed', async () => {
    for (const [protocolVersion, primes] of [
      ['2025-11-25', true],
      ['2025-06-18', false],
    ] as const) {
      const { directory, here } = await createDirectory({ protocolVersion });
      expect(directory.primes(key)).toBe(false); // nothing is known before it was admitted
      await directory.admits(visitor);
      expect(directory.primes(key)).toBe(primes);
      here.set('other', { protocolVersion } as Session);
      expect(directory.primes('other')).toBe(primes);
    }
  });
});

describe('[P7] a session that the store does not know', () => {
  it.each<[string, Partial<{ isHeld: boolean; dataAgeMs: number; healthyForMs: number }>]>([
    ['this instance has no lease', { isHeld: false }],
    ['owners may still have to register again in data that are new', { dataAgeMs: settledMs - 1 }],
    ['the store was away just now', { healthyForMs: settledMs - 1 }],
  ])('may be found later if %s', async (_, fields) => {
    const { directory, state } = await createDirectory('no record');
    Object.assign(state, fields);
    expect([await directory.admits(visitor), await directory.locate(visitor, undefined)]).toEqual(['later', 'later']);
  });

  it('does not exist once all owners had the time to register it', async () => {
    const { directory, state } = await createDirectory('no record');
    const unknown = { fault: 'unknown_session' };
    expect([await directory.admits(visitor), await directory.locate(visitor, undefined)]).toEqual([unknown, unknown]);
    Object.assign(state, { healthyForMs: 0, hadBreak: false }); // it was never away: it has lost nothing
    expect(await directory.admits(visitor)).toEqual(unknown);
  });

  it('because the store is away may be found later, while any other fault of the store is a fault', async () => {
    const { directory, find } = await createDirectory();
    find.mockRejectedValueOnce(new StoreUnavailable('unreachable')).mockRejectedValueOnce(new StoreUnavailable('full'));
    expect([await directory.admits(visitor), await directory.locate(visitor, undefined)]).toEqual(['later', 'later']);
    find.mockRejectedValueOnce(new Error('wrong type'));
    await expect(directory.admits(visitor)).rejects.toThrow('wrong type');
  });
});

describe('the directory’s lookup of a session’s owner', () => {
  it('comes from the record, which is not read every time', async () => {
    const { directory, find } = await createDirectory();
    for (let n = 0; n < 3; n++) {
      expect(await directory.admits(visitor)).toBe('yes');
      expect(await directory.locate(visitor, undefined)).toEqual(atOwner);
    }
    expect(find).toHaveBeenCalledTimes(1);
  });

  it('is this instance if the session is held here', async () => {
    const { directory, here, handle } = await createDirectory();
    here.set(key, { isReady: true } as Session);
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
  });

  it('is repeated when the owner failed', async () => {
    const { directory, store, find } = await createDirectory();
    await directory.locate(visitor, undefined);
    await store.sessions.takeOver(key, { owner: 'owner', epoch: aRecord().epoch }, 'next');
    for (const failed of [lost, gone, denied(1)])
      expect(await directory.locate(visitor, failed)).toMatchObject({ instance: 'next' });
    expect(find).toHaveBeenCalledTimes(2);
  });

  it('finds no owner if the session is ending here for good', async () => {
    const { directory, ending } = await createDirectory({ owner: 'me' });
    ending.set(key, { leavesNoRecord: true });
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'unknown_session' });
  });

  it('[P8] is cached for ten thousand sessions', async () => {
    const { directory, store, find } = await createDirectory();
    await directory.locate(visitor, undefined);
    find.mockImplementation(async () => aRecord({ owner: 'owner' }));
    for (let n = 0; n < 10_000; n++) await directory.locate({ ...visitor, key: `k${n}` }, undefined);
    find.mockClear();
    await directory.locate({ ...visitor, key: 'k9999' }, undefined);
    expect(find).toHaveBeenCalledTimes(0);
    await directory.locate(visitor, undefined);
    expect(find).toHaveBeenCalledTimes(1);
    await store.close();
  });
});

describe('the directory takes a session over', () => {
  it('[P6] once, even for a request that was reading the record during another takeover', async () => {
    const { directory, store, find, adopted, handle } = await createDirectory({ owner: '' });
    let goOn: (value?: unknown) => void = () => undefined;
    const waits = new Promise((resolve) => {
      goOn = resolve;
    });
    const original = store.sessions.find.bind(store.sessions);
    find.mockImplementationOnce(async (of) => {
      await waits;
      const { sessions } = store;
      find.mockRestore();
      return sessions.find(of); // by now the record names this instance
    });
    const slow = directory.locate(visitor, undefined);
    find.mockImplementationOnce(original);
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
    goOn();
    expect(await slow).toEqual({ here: handle });
    expect(adopted).toHaveLength(1);
  });

  it('at once if its owner released it', async () => {
    const { directory, state, adopted, handle } = await createDirectory({ owner: '' });
    Object.assign(state, { healthyForMs: 0, dataAgeMs: 0 });
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
    expect(adopted).toMatchObject([{ record: { owner: 'me', server: 'everything' }, calls: [] }]);
  });

  it('at once if the record already names this instance, because the answer of the takeover was lost', async () => {
    const { directory, adopted, handle } = await createDirectory({ owner: 'me' });
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
    expect(adopted).toHaveLength(1);
  });

  it.each([lost, gone])('[P6] from an owner that is dead (%j), which cannot come back then', async (failed) => {
    const { directory, store, adopted, lose, handle } = await createDirectory();
    lose();
    expect(await directory.locate(visitor, failed)).toEqual({ here: handle });
    expect(adopted[0]?.record).toMatchObject({ owner: 'me' });
    expect(await store.instances.renew('owner')).toMatchObject({ held: false });
  });

  it('[P6] never from a live owner, which is asked again', async () => {
    const { directory, takeOver } = await createDirectory();
    for (const failed of [lost, gone]) expect(await directory.locate(visitor, failed)).toEqual(atOwner);
    expect(takeOver).not.toHaveBeenCalled();
  });

  it.each<[string, object]>([
    ['has no lease itself', { isHeld: false }],
    ['was without the store just now', { healthyForMs: leaseMs - 1 }],
    ['knows the data only for a moment', { dataAgeMs: settledMs - 1 }],
  ])('[P6] but not while this instance %s', async (_, fields) => {
    const { directory, state, takeOver, lose, handle } = await createDirectory();
    lose();
    const before = { ...state };
    Object.assign(state, fields);
    expect(await directory.locate(visitor, lost)).toBe('later');
    expect(takeOver).not.toHaveBeenCalled();
    Object.assign(state, before);
    expect(await directory.locate(visitor, lost)).toEqual({ here: handle });
  });

  it('[P9] but not if this instance is about to stop', async () => {
    const { directory, may, takeOver } = await createDirectory({ owner: '' });
    may.adopt = false;
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'draining' });
    expect(takeOver).not.toHaveBeenCalled();
  });

  it('[P9] by another instance if this one is about to stop, for a request that has not failed there', async () => {
    const { directory, may, takeOver } = await createDirectory({ owner: '', epoch: 3 });
    Object.assign(may, { adopt: false, successor: 'next' });
    const successor = { instance: 'next', epoch: 3, adopts: true };
    expect(await directory.locate(visitor, undefined, true)).toEqual(successor);
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'draining' });
    const failed = { instance: 'next', epoch: 3, why: 'moved', times: 1 } as const;
    expect(await directory.locate(visitor, failed, true)).toEqual({ fault: 'draining' });
    may.successor = undefined;
    expect(await directory.locate(visitor, undefined, true)).toEqual({ fault: 'draining' });
    expect(takeOver).not.toHaveBeenCalled();
  });

  it('[P9] by another instance in the meantime: one that is about to stop does not trust what it remembers', async () => {
    const { directory, store, may } = await createDirectory({ owner: 'me' });
    expect(await directory.admits(visitor)).toBe('yes'); // the record is remembered
    may.adopt = false;
    Object.assign(may, { end: true });
    expect(await directory.locate(visitor, undefined, true)).toEqual({ fault: 'draining', isPassing: 'soon' });
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'draining' });
    const record = await store.sessions.find(key);
    await store.sessions.release(key, record?.epoch ?? 0);
    await store.instances.join('next');
    const released = await store.sessions.find(key);
    if (released === undefined) throw new Error('the record is gone');
    expect(await store.sessions.takeOver(key, released, 'next')).toMatchObject({ outcome: 'taken' });
    expect(await directory.locate(visitor, undefined)).toMatchObject({ instance: 'next' });
  });

  it('[P9] in place of an instance that is about to stop, once that has released it', async () => {
    const { directory, adopted } = await createDirectory({ owner: '' });
    await directory.takeOverReleased(key, undefined);
    expect(adopted).toMatchObject([{ record: { owner: 'me' } }]);
    await directory.takeOverReleased(key, undefined);
    await directory.takeOverReleased('unknown', undefined);
    expect(adopted).toHaveLength(1);
    const owned = await createDirectory();
    await owned.directory.takeOverReleased(key, undefined);
    expect(owned.takeOver).not.toHaveBeenCalled();
    const removed = await createDirectory({ owner: '', server: 'removed' });
    await removed.directory.takeOverReleased(key, undefined);
    expect(removed.takeOver).not.toHaveBeenCalled();
  });

  it.each<[string, 'takeOver' | 'read']>([
    ['is being taken over', 'takeOver'],
    ['has been taken over, and its log is read', 'read'],
  ])('[C-01] [P9] but releases it at once if this instance is told to stop while it %s', async (_, step) => {
    const { directory, store, may, takeOver, adopted } = await createDirectory({ owner: '' });
    let goOn: () => void = () => undefined;
    const waits = new Promise<void>((resolve) => (goOn = resolve));
    const read = vi.spyOn(store.log, 'read');
    // Once only: then the store itself answers.
    if (step === 'takeOver')
      takeOver.mockImplementationOnce((...of) => waits.then(() => store.sessions.takeOver(...of)));
    else read.mockImplementationOnce((...of) => waits.then(() => store.log.read(...of)));
    const located = directory.locate(visitor, undefined);
    await vi.waitFor(() => expect(step === 'takeOver' ? takeOver : read).toHaveBeenCalled());
    expect(directory.isChanging(key)).toBe(true);
    const settled = directory.settled();
    may.adopt = false;
    goOn();
    expect(await located).toEqual({ fault: 'draining' });
    await settled;
    expect(adopted).toEqual([]);
    const record = await store.sessions.find(key);
    expect(record?.owner).toBe('');
  });

  it('once for any number of requests', async () => {
    const { directory, takeOver, adopted, handle } = await createDirectory({ owner: '' });
    const all = await Promise.all([1, 2, 3].map(() => directory.locate(visitor, undefined)));
    expect(all).toEqual([{ here: handle }, { here: handle }, { here: handle }]);
    expect([takeOver.mock.calls.length, adopted.length]).toEqual([1, 1]);
  });

  it('only if it is first, and otherwise looks it up again', async () => {
    const { directory, store, adopted } = await createDirectory({ owner: '' });
    await directory.admits(visitor);
    await store.sessions.takeOver(key, { owner: '', epoch: aRecord().epoch }, 'other');
    expect(await directory.locate(visitor, undefined)).toBe('later');
    expect(await directory.locate(visitor, undefined)).toMatchObject({ instance: 'other' });
    expect(adopted).toEqual([]);
  });

  it('later if the store goes away meanwhile, even if the takeover has already happened', async () => {
    const { directory, store, takeOver, adopted, handle } = await createDirectory({ owner: '' });
    takeOver.mockImplementationOnce(async () => {
      await store.sessions.takeOver(key, { owner: '', epoch: aRecord().epoch }, 'me');
      throw new StoreUnavailable('unreachable');
    });
    expect(await directory.locate(visitor, undefined)).toBe('later');
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
    expect(adopted).toHaveLength(1);
  });

  it('[U-01] after a pause if its owners were lost repeatedly, for which a request waits only if it is short', async () => {
    const { directory, takeOver, adopted } = await createDirectory({ owner: '' });
    takeOver.mockImplementationOnce(async () => ({ outcome: 'paused', pauseMs: 1_001 }));
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'takeover_paused', isPassing: true });
    takeOver.mockImplementationOnce(async () => ({ outcome: 'paused', pauseMs: 1_000 }));
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'takeover_paused', isPassing: 'soon' });
    expect(adopted).toEqual([]);
    expect(await directory.locate(visitor, undefined)).toMatchObject({ here: expect.anything() });
  });

  it('never after too many lost owners, because the session may be what kills them', async () => {
    const { directory, takeOver, adopted } = await createDirectory({ owner: '' });
    takeOver.mockImplementationOnce(async () => ({ outcome: 'worn_out' }));
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'unknown_session' });
    expect(adopted).toEqual([]);
  });
});

describe('an owner that denies having a session', () => {
  it('is believed after it has denied one request three times', async () => {
    const { directory, handle, adopted } = await createDirectory();
    for (const count of [1, 2]) expect(await directory.locate(visitor, denied(count))).toBe('later');
    expect(adopted).toEqual([]);
    expect(await directory.locate(visitor, denied(3))).toEqual({ here: handle });
    expect(adopted).toHaveLength(1);
  });

  it('[C-06] [P8] is not believed because of denials to other requests', async () => {
    const { directory, takeOver } = await createDirectory();
    for (let n = 0; n < 100; n++) expect(await directory.locate(visitor, denied(1))).toBe('later');
    expect(takeOver).not.toHaveBeenCalled();
  });

  it('[C-06] is asked again if it may have taken the session over since', async () => {
    const { directory, store, adopted } = await createDirectory();
    const taken = await store.sessions.takeOver(key, { owner: 'owner', epoch }, 'owner');
    if (taken.outcome !== 'taken') throw new Error(taken.outcome);
    expect(await directory.locate(visitor, denied(3))).toBe('later');
    expect(adopted).toEqual([]);
  });

  it('[C-06] [P6] is checked for life before the session is taken from it, and fenced if it is dead', async () => {
    const { directory, store, lose, handle } = await createDirectory();
    const areAlive = vi.spyOn(store.instances, 'areAlive');
    const declareDead = vi.spyOn(store.instances, 'declareDead');
    lose();
    expect(await directory.locate(visitor, denied(3))).toEqual({ here: handle });
    expect([areAlive.mock.calls, declareDead.mock.calls]).toEqual([[[['owner']]], [['owner']]]);
  });

  it('is asked again after a pause', async () => {
    const { directory, adopted } = await createDirectory();
    const denial = denied(1);
    const said = [];
    for (let n = 0; n < 5; n++) said.push(await directory.locate(visitor, denial));
    expect(said).toEqual(['later', ...[1, 2, 3, 4].map(() => atOwner)]);
    expect(adopted).toEqual([]);
  });

  it('is not believed while this instance has no lease, without which it gets no messages', async () => {
    const { directory, state, adopted } = await createDirectory();
    state.isHeld = false;
    for (let n = 0; n < 5; n++) expect(await directory.locate(visitor, denied(3))).toBe('later');
    expect(adopted).toEqual([]);
  });
});

it('[S-21] [P8] keeps no more records than have a few mebibytes, and of each only what requests need', async () => {
  const subject = 's'.repeat(30 * 1024);
  const user = { ...principal, subject };
  const { directory, store, find } = await createDirectory({ principal: user });
  const others = Array.from({ length: 1_000 }, (_, n) => `other ${n}`);
  for (const other of others) {
    const record = aRecord({ owner: 'owner', principal: user, initialize: Buffer.alloc(64 * 1024) });
    await store.sessions.create(other, record);
  }
  const admit = (of: string) => directory.admits({ ...visitor, key: of, principal: user });
  for (const each of [key, ...others]) expect(await admit(each)).toBe('yes');
  find.mockClear();
  expect(await admit(others.at(-500) as string)).toBe('yes');
  expect(find).not.toHaveBeenCalled(); // 500 records with their texts would be 47 MiB
  expect(await admit(key)).toBe('yes');
  expect(find).toHaveBeenCalledOnce();
});
