import { describe, expect, it, vi } from 'vitest';
import type { Reason } from '../../../src/protocol/faults.ts';
import { ClientState } from '../../../src/session/record/client-state.ts';
import { coversAll, UsedScopes } from '../../../src/session/record/used-scopes.ts';
import type { Registration } from '../../../src/store/session-records.ts';
import { readMessage } from '../../support/fake-backend.ts';
import { createFakeReply } from '../../support/fake-reply.ts';
import { request, turn } from '../session-fixture.ts';

type Amendment = 'done' | 'fenced' | 'no_record';

function createFixture(used: readonly string[] = []) {
  const names = new Set(used);
  const ended: { reason: Reason | undefined } = { reason: undefined };
  const amended = vi.fn(async (): Promise<Amendment> => 'done');
  const registered = vi.fn(async (): Promise<Registration> => 'registered');
  const client = Object.assign(new ClientState(Buffer.from('{}')), { usedScopes: names });
  const scopes = new UsedScopes(client, 30, {
    amendRecord: amended,
    register: registered,
    noteActivity: () => undefined,
    get endFault() {
      return ended.reason;
    },
  });
  const post = { messages: [readMessage(request(7))], isBatch: false };
  /** Asks for something with credentials that allow these, for which those are needed. */
  const ask = (allowed: readonly string[] | undefined, needs?: readonly string[]) => {
    const reply = Object.assign(createFakeReply(), { scopes: allowed && new Set(allowed), needs });
    const goOn = vi.fn();
    scopes.admit(reply, post, goOn);
    return { answered: reply.answered, goOn, reply };
  };
  return { scopes, names, ended, amended, registered, ask };
}

describe('the scopes that a session has used', () => {
  it('are covered by credentials that have them all, or that have no scopes', () => {
    expect(coversAll(undefined, ['a'])).toBe(true);
    expect(coversAll(new Set(['a', 'b']), ['a'])).toBe(true);
    expect(coversAll(new Set(['a']), ['a', 'b'])).toBe(false);
    expect(coversAll(new Set(), [])).toBe(true);
  });

  it('[S02] [A05] hide the session from requests with fewer scopes, and admit requests with more', async () => {
    const { ask, names } = createFixture(['read', 'write']);
    const weaker = ask(['read'], ['read']);
    expect(await weaker.answered()).toEqual({ kind: 'fault', reason: 'unknown_session', id: 7 });
    expect(weaker.goOn).not.toHaveBeenCalled();
    expect(ask(['read', 'write', 'admin'], ['read']).goOn).toHaveBeenCalledOnce();
    expect(ask(undefined).goOn).toHaveBeenCalledOnce();
    expect([...names]).toEqual(['read', 'write']); // what is brought is not used
  });

  it('[S02] grow with the needs of requests, which continue once the record is written', async () => {
    const { ask, amended, names } = createFixture(['read']);
    const stores: ((said: Amendment) => void)[] = [];
    amended.mockImplementation(() => new Promise((resolve) => void stores.push(resolve)));
    const all = ['read', 'write'];
    const first = ask(all, ['read', 'write']);
    const second = ask(all, ['write']);
    const cheap = ask(all, ['read']);
    await turn();
    expect([first, second, cheap].map(({ goOn }) => goOn.mock.calls.length)).toEqual([0, 0, 1]);
    expect(ask(['read']).goOn).toHaveBeenCalledOnce(); // nothing was had by the other scope yet
    amended.mockImplementation(async () => 'done');
    for (const store of stores) store('done');
    await turn();
    expect(first.goOn).toHaveBeenCalledOnce();
    expect(await ask(['read']).answered()).toMatchObject({ reason: 'unknown_session' });
    expect([...names]).toEqual(all);
    amended.mockClear();
    expect(ask(all, ['write']).goOn).toHaveBeenCalledOnce(); // at once from then on
    expect(amended).not.toHaveBeenCalled();
  });

  it('are registered where the store has lost the record', async () => {
    const { ask, amended, registered } = createFixture();
    amended.mockResolvedValueOnce('no_record');
    const { goOn } = ask(undefined, ['write']);
    await turn();
    expect([registered.mock.calls.length, goOn.mock.calls.length]).toEqual([1, 1]);
  });

  it.each<[string, () => Promise<Amendment>]>([
    ['is somebody else’s', async () => 'fenced'],
    ['cannot be written', () => Promise.reject(new Error('away'))],
    ['is not written in time', () => new Promise(() => undefined)],
  ])('[P7] let no request pass that needs more while the record %s', async (_, amend) => {
    const { ask, amended } = createFixture();
    amended.mockImplementation(amend);
    const { answered, goOn } = ask(undefined, ['write']);
    expect(await answered()).toEqual({ kind: 'fault', reason: 'store_unavailable', id: 7 });
    expect(goOn).not.toHaveBeenCalled();
  });

  it('[C-17] shrink again in the record after a refused step-up, so that fewer scopes suffice', async () => {
    const { ask, amended, names } = createFixture(['read']);
    const stores: ((said: Amendment) => void)[] = [];
    amended.mockImplementation(() => new Promise((resolve) => void stores.push(resolve)));
    const stepUp = ask(['read', 'write'], ['write']);
    expect(await stepUp.answered()).toMatchObject({ reason: 'store_unavailable' });
    expect(ask(['read'], ['read']).goOn).toHaveBeenCalledOnce();
    expect([...names]).toEqual(['read']);
    expect(amended).toHaveBeenCalledTimes(2); // the second one says so
    for (const store of stores) store('done'); // late
    await turn();
    expect(ask(['read'], ['read']).goOn).toHaveBeenCalledOnce();
    expect(stepUp.goOn).not.toHaveBeenCalled();
  });

  it('[C-17] keep the scopes that another request waits for after a refused step-up', async () => {
    const { ask, amended, names } = createFixture();
    amended.mockImplementation(() => new Promise(() => undefined));
    const first = ask(undefined, ['write']);
    await new Promise((resolve) => setTimeout(resolve, 15)); // half the time that each may wait
    const second = ask(undefined, ['write']);
    expect(await first.answered()).toMatchObject({ reason: 'store_unavailable' });
    expect([...names]).toEqual(['write']);
    expect(await second.answered()).toMatchObject({ reason: 'store_unavailable' });
    expect([...names]).toEqual([]);
  });

  it('[C-17] never shrink below the stored scopes', async () => {
    const { ask, amended, names } = createFixture();
    ask(undefined, ['write']);
    await turn();
    amended.mockImplementation(() => Promise.reject(new Error('away')));
    expect(await ask(undefined, ['admin']).answered()).toMatchObject({ reason: 'store_unavailable' });
    expect([...names]).toEqual(['write']);
    expect(await ask(['read'], ['read']).answered()).toMatchObject({ reason: 'unknown_session' });
  });

  it('[C-02] let no waiting request continue in a session that has ended meanwhile', async () => {
    const { ask, amended, ended } = createFixture();
    let store: (said: Amendment) => void = () => undefined;
    amended.mockImplementation(() => new Promise((resolve) => (store = resolve)));
    const { answered, goOn } = ask(undefined, ['write']);
    ended.reason = 'draining';
    store('done');
    expect(await answered()).toEqual({ kind: 'fault', reason: 'draining', id: 7 });
    expect(goOn).not.toHaveBeenCalled();
  });

  it('begin with the scopes of initialize, in the record too', () => {
    const { scopes, ask, amended, names } = createFixture();
    scopes.begin(['read']);
    expect(ask(['read'], ['read']).goOn).toHaveBeenCalledOnce();
    expect([...names]).toEqual(['read']);
    expect(amended).not.toHaveBeenCalled();
  });
});
