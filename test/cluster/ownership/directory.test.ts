import { describe, expect, it, vi } from 'vitest';
import type { Session } from '../../../src/session/session.ts';
import { StoreUnavailable } from '../../../src/store/store-unavailable.ts';
import { aRecord } from '../../contract/log-writer.ts';
import { createDirectory, key, leaseMs, principal, server, settledMs, visitor } from './directory-fixture.ts';

const { epoch } = aRecord();
const atOwner = { instance: 'owner', epoch };
const lost = { ...atOwner, why: 'lost', denials: 0 } as const;
const gone = { ...atOwner, why: 'gone', denials: 0 } as const;
/** It has said so many times in a row that it does not have the session. */
const denied = (denials: number) => ({ ...atOwner, why: 'moved', denials }) as const;

describe('who may use a session', () => {
  it('is who made it, at its server, in a revision that is served', async () => {
    const { directory } = await createDirectory();
    expect(await directory.admits(visitor)).toBe('yes');
    for (const version of ['2025-11-25', '2025-06-18'])
      expect(await directory.admits({ ...visitor, version })).toBe('yes');
    expect(await directory.admits({ ...visitor, version: '1999-01-01' })).toEqual({ fault: 'unsupported_version' });
  });

  it('[P11] is nobody else: to them it does not exist, whatever else they say', async () => {
    const { directory } = await createDirectory();
    const unknown = { fault: 'unknown_session' };
    for (const part of ['issuer', 'subject', 'client']) {
      const other = { ...principal, [part]: 'x' };
      expect(await directory.admits({ ...visitor, principal: other, version: '1999-01-01' })).toEqual(unknown);
    }
    expect(await directory.admits({ ...visitor, server: { ...server, name: 'other', digest: 'x' } })).toEqual(unknown);
  });

  it('is not served by an instance with another configuration of its server', async () => {
    const { directory } = await createDirectory();
    const fault = { fault: 'other_configuration' };
    expect(await directory.admits({ ...visitor, server: { ...server, digest: 'x' } })).toEqual(fault);
  });

  it('is looked at in what is held here first', async () => {
    const { directory, here, find } = await createDirectory('no record');
    const session = { isReady: true, server, principal, protocolVersion: '2025-11-25' } as unknown as Session;
    here.set(key, session);
    expect(await directory.admits(visitor)).toBe('yes');
    expect(find).not.toHaveBeenCalled();
  });

  it('[B11b] of somebody else takes the same questions as one that does not exist, wherever it is and is known of', async () => {
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

  it('[S02] is who brings all scopes that the session has used, by what its record says', async () => {
    const usedScopes = ['read', 'write'];
    const clientState = Buffer.from(JSON.stringify({ subscriptions: [], usedScopes }));
    const { directory, here } = await createDirectory({ clientState });
    const admits = (...scopes: string[]) => directory.admits({ ...visitor, scopes: new Set(scopes) });
    expect([await admits('write', 'read'), await admits('write', 'read', 'more'), await admits('read')]).toEqual([
      'yes',
      'yes',
      { fault: 'unknown_session' },
    ]);
    expect(await directory.admits(visitor)).toBe('yes'); // credentials that do not speak of scopes allow everything
    const session = { server, principal, protocolVersion: '2025-11-25', usedScopes: new Set(['admin']) };
    here.set(key, session as unknown as Session);
    expect([await admits('admin'), await admits('write')]).toEqual(['yes', { fault: 'unknown_session' }]);
  });

  it('[S02] and where a stream is read without an owner, the record is read anew for who does not bring everything', async () => {
    const { directory, find, store } = await createDirectory();
    const scopes = new Set(['read']);
    expect(await directory.admits({ ...visitor, scopes })).toBe('yes');
    const state = Buffer.from(JSON.stringify({ subscriptions: [], usedScopes: ['write'] }));
    expect(await store.sessions.amend(key, aRecord().epoch, { clientState: state })).toBe('done');
    expect(await directory.admits({ ...visitor, scopes })).toBe('yes'); // the owner knows better, and is asked
    expect(await directory.admits({ ...visitor, scopes }, true)).toEqual({ fault: 'unknown_session' });
    find.mockClear();
    expect(await directory.admits(visitor, true)).toBe('yes');
    expect(find).not.toHaveBeenCalled();
  });

  it('is known by the revision, which says whether streams are primed', async () => {
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
  ])('may be known later where %s', async (_, fields) => {
    const { directory, state } = await createDirectory('no record');
    Object.assign(state, fields);
    expect([await directory.admits(visitor), await directory.locate(visitor, undefined)]).toEqual(['later', 'later']);
  });

  it('does not exist once all owners had the time to say that they have it', async () => {
    const { directory, state } = await createDirectory('no record');
    const unknown = { fault: 'unknown_session' };
    expect([await directory.admits(visitor), await directory.locate(visitor, undefined)]).toEqual([unknown, unknown]);
    Object.assign(state, { healthyForMs: 0, hadBreak: false }); // it was never away: it has lost nothing
    expect(await directory.admits(visitor)).toEqual(unknown);
  });

  it('or cannot be asked may be known later; any other fault of the store is one', async () => {
    const { directory, find } = await createDirectory();
    find.mockRejectedValueOnce(new StoreUnavailable('unreachable')).mockRejectedValueOnce(new StoreUnavailable('full'));
    expect([await directory.admits(visitor), await directory.locate(visitor, undefined)]).toEqual(['later', 'later']);
    find.mockRejectedValueOnce(new Error('wrong type'));
    await expect(directory.admits(visitor)).rejects.toThrow('wrong type');
  });
});

describe('where a session is', () => {
  it('is what its record says, which is not asked for every time', async () => {
    const { directory, find } = await createDirectory();
    for (let n = 0; n < 3; n++) {
      expect(await directory.admits(visitor)).toBe('yes');
      expect(await directory.locate(visitor, undefined)).toEqual(atOwner);
    }
    expect(find).toHaveBeenCalledTimes(1);
  });

  it('is here if it is held here', async () => {
    const { directory, here, handle } = await createDirectory();
    here.set(key, { isReady: true } as Session);
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
  });

  it('is asked for anew when the owner that was asked failed', async () => {
    const { directory, store, find } = await createDirectory();
    await directory.locate(visitor, undefined);
    await store.sessions.takeOver(key, { owner: 'owner', epoch: aRecord().epoch }, 'next');
    for (const failed of [lost, gone, denied(1)])
      expect(await directory.locate(visitor, failed)).toMatchObject({ instance: 'next' });
    expect(find).toHaveBeenCalledTimes(2);
  });

  it('is nowhere if it is ending here for good', async () => {
    const { directory, ending } = await createDirectory({ owner: 'me' });
    ending.set(key, 'unknown_session');
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'unknown_session' });
  });

  it('[P8] is remembered for ten thousand sessions', async () => {
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

describe('a session is taken over', () => {
  it('[P6] once, also by a request that was reading the record while another one took it over', async () => {
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

  it('at once if this instance has it by the record: it did not hear that it took it', async () => {
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

  it('[P6] not from one that lives: it is asked again', async () => {
    const { directory, takeOver } = await createDirectory();
    for (const failed of [lost, gone]) expect(await directory.locate(visitor, failed)).toEqual(atOwner);
    expect(takeOver).not.toHaveBeenCalled();
  });

  it.each<[string, object]>([
    ['has no lease itself', { isHeld: false }],
    ['was without the store just now', { healthyForMs: leaseMs - 1 }],
    ['knows the data only for a moment', { dataAgeMs: settledMs - 1 }],
  ])('[P6] not while this instance %s', async (_, fields) => {
    const { directory, state, takeOver, lose, handle } = await createDirectory();
    lose();
    const before = { ...state };
    Object.assign(state, fields);
    expect(await directory.locate(visitor, lost)).toBe('later');
    expect(takeOver).not.toHaveBeenCalled();
    Object.assign(state, before);
    expect(await directory.locate(visitor, lost)).toEqual({ here: handle });
  });

  it('[P9] not by an instance that is about to stop', async () => {
    const { directory, may, takeOver } = await createDirectory({ owner: '' });
    may.adopt = false;
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'draining' });
    expect(takeOver).not.toHaveBeenCalled();
  });

  it.each<[string, 'takeOver' | 'read']>([
    ['is being taken over', 'takeOver'],
    ['has been taken over, and its log is read', 'read'],
  ])('[C-01] [P9] not by an instance that is told to stop while it %s: it is released at once', async (_, step) => {
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
    expect(directory.isTakingOver(key)).toBe(true);
    const settled = directory.settled();
    may.adopt = false;
    goOn();
    expect(await located).toEqual({ fault: 'draining' });
    await settled;
    expect(adopted).toEqual([]);
    const record = await store.sessions.find(key);
    expect(record?.owner).toBe('');
  });

  it('once, by however many requests', async () => {
    const { directory, takeOver, adopted, handle } = await createDirectory({ owner: '' });
    const all = await Promise.all([1, 2, 3].map(() => directory.locate(visitor, undefined)));
    expect(all).toEqual([{ here: handle }, { here: handle }, { here: handle }]);
    expect([takeOver.mock.calls.length, adopted.length]).toEqual([1, 1]);
  });

  it('by whoever is first; the other one looks again', async () => {
    const { directory, store, adopted } = await createDirectory({ owner: '' });
    await directory.admits(visitor);
    await store.sessions.takeOver(key, { owner: '', epoch: aRecord().epoch }, 'other');
    expect(await directory.locate(visitor, undefined)).toBe('later');
    expect(await directory.locate(visitor, undefined)).toMatchObject({ instance: 'other' });
    expect(adopted).toEqual([]);
  });

  it('later where the store goes away meanwhile, and then although it has happened already', async () => {
    const { directory, store, takeOver, adopted, handle } = await createDirectory({ owner: '' });
    takeOver.mockImplementationOnce(async () => {
      await store.sessions.takeOver(key, { owner: '', epoch: aRecord().epoch }, 'me');
      throw new StoreUnavailable('unreachable');
    });
    expect(await directory.locate(visitor, undefined)).toBe('later');
    expect(await directory.locate(visitor, undefined)).toEqual({ here: handle });
    expect(adopted).toHaveLength(1);
  });

  it('[U-01] after a pause where its owners were lost again and again: a request waits for a short one alone', async () => {
    const { directory, takeOver, adopted } = await createDirectory({ owner: '' });
    takeOver.mockImplementationOnce(async () => ({ outcome: 'paused', pauseMs: 1_001 }));
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'takeover_paused', isPassing: true });
    takeOver.mockImplementationOnce(async () => ({ outcome: 'paused', pauseMs: 1_000 }));
    expect(await directory.locate(visitor, undefined)).toBe('later');
    expect(adopted).toEqual([]);
    expect(await directory.locate(visitor, undefined)).toMatchObject({ here: expect.anything() });
  });

  it('never where too many owners were lost: it may be what they die of', async () => {
    const { directory, takeOver, adopted } = await createDirectory({ owner: '' });
    takeOver.mockImplementationOnce(async () => ({ outcome: 'worn_out' }));
    expect(await directory.locate(visitor, undefined)).toEqual({ fault: 'unknown_session' });
    expect(adopted).toEqual([]);
  });
});

describe('an owner that denies to have a session', () => {
  it('may be about to get it; when it has told one request three times, it does not have it', async () => {
    const { directory, handle, adopted } = await createDirectory();
    for (const count of [1, 2]) expect(await directory.locate(visitor, denied(count))).toBe('later');
    expect(adopted).toEqual([]);
    expect(await directory.locate(visitor, denied(3))).toEqual({ here: handle });
    expect(adopted).toHaveLength(1);
  });

  it('[C-06] [P8] is not taken at its word by what it told other requests, however many and long ago', async () => {
    const { directory, takeOver } = await createDirectory();
    for (let n = 0; n < 100; n++) expect(await directory.locate(visitor, denied(1))).toBe('later');
    expect(takeOver).not.toHaveBeenCalled();
  });

  it('[C-06] may have taken the session over since it was asked: then it is asked again', async () => {
    const { directory, store, adopted } = await createDirectory();
    const taken = await store.sessions.takeOver(key, { owner: 'owner', epoch }, 'owner');
    if (taken.outcome !== 'taken') throw new Error(taken.outcome);
    expect(await directory.locate(visitor, denied(3))).toBe('later');
    expect(adopted).toEqual([]);
  });

  it('[C-06] [P6] is asked whether it lives before the session is taken from it, and fenced off if it does not', async () => {
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

  it('may deny it because this instance has no lease, by which it could be told anything', async () => {
    const { directory, state, adopted } = await createDirectory();
    state.isHeld = false;
    for (let n = 0; n < 5; n++) expect(await directory.locate(visitor, denied(3))).toBe('later');
    expect(adopted).toEqual([]);
  });
});
