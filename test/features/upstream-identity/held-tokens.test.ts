import { describe, expect, it } from 'vitest';
import { NoUpstreamToken, type TokenSubject } from '../../../src/core/backend/upstream-tokens.ts';
import { HeldTokens, type IssuedToken } from '../../../src/features/upstream-identity/held-tokens.ts';
import { turn } from '../../support/wait-for.ts';

/** Requests that wait until the test answers them. */
class Endpoint {
  readonly waiting: {
    subject: TokenSubject | undefined;
    issue(token: IssuedToken): void;
    refuse(cause: Error): void;
  }[] = [];
  requests = 0;
  now = 0;
  readonly tokens = new HeldTokens(
    (subject) =>
      new Promise((issue, refuse) => {
        this.requests += 1;
        this.waiting.push({ subject, issue, refuse });
      }),
    () => this.now,
  );

  /** Answers the oldest request. */
  async answer(outcome: IssuedToken | Error): Promise<void> {
    await expect.poll(() => this.waiting.length).toBeGreaterThan(0);
    const request = this.waiting.shift();
    if (outcome instanceof Error) request?.refuse(outcome);
    else request?.issue(outcome);
    await turn();
  }
}

const minute = 60_000;
const issued = (token: string, lifetimeMs?: number): IssuedToken => ({ token, lifetimeMs });
const refusal = new NoUpstreamToken('upstream_token_refused', 'refused');
const alice = (token = 'a1'): TokenSubject => ({ token, user: 'alice.read' });

describe('the tokens of a server', () => {
  it('concurrent calls share one request for a token', async () => {
    const endpoint = new Endpoint();
    const all = Promise.all(Array.from({ length: 50 }, () => endpoint.tokens.get(undefined)));
    await endpoint.answer(issued('t1', minute));
    expect(new Set(await all)).toEqual(new Set(['t1']));
    expect(endpoint.requests).toBe(1);
    expect(endpoint.tokens.get(undefined)).toBe('t1');
  });

  it('a token is renewed while it is still valid, and no call waits for that', async () => {
    const endpoint = new Endpoint();
    const first = endpoint.tokens.get(undefined);
    await endpoint.answer(issued('t1', 10 * minute));
    await first;
    endpoint.now = 9 * minute - 1;
    expect(endpoint.tokens.get(undefined)).toBe('t1');
    await turn();
    expect(endpoint.requests).toBe(1);
    endpoint.now = 9 * minute;
    expect([endpoint.tokens.get(undefined), endpoint.tokens.get(undefined)]).toEqual(['t1', 't1']);
    await endpoint.answer(issued('t2', 10 * minute));
    expect(endpoint.requests).toBe(2);
    expect(endpoint.tokens.get(undefined)).toBe('t2');
  });

  it('a failed early renewal leaves the valid token in use, and the next attempt waits for a pause', async () => {
    const endpoint = new Endpoint();
    const first = endpoint.tokens.get(undefined);
    await endpoint.answer(issued('t1', 10 * minute));
    await first;
    endpoint.now = 9 * minute;
    endpoint.tokens.get(undefined);
    await endpoint.answer(refusal);
    expect(endpoint.tokens.get(undefined)).toBe('t1');
    await turn();
    expect(endpoint.requests).toBe(2);
  });

  it('an expired token is never used', async () => {
    const endpoint = new Endpoint();
    const first = endpoint.tokens.get(undefined);
    await endpoint.answer(issued('t1', minute));
    await first;
    endpoint.now = minute - 5_000;
    const second = endpoint.tokens.get(undefined);
    expect(second).toBeInstanceOf(Promise);
    await endpoint.answer(issued('t2', minute));
    expect(await second).toBe('t2');
  });

  it.each([
    ['no lifetime: one minute', undefined, minute],
    ['a huge lifetime: one hour', 1e15, 60 * minute],
  ])('%s', async (_, lifetimeMs, usedMs) => {
    const endpoint = new Endpoint();
    const first = endpoint.tokens.get(undefined);
    await endpoint.answer(issued('t1', lifetimeMs));
    await first;
    endpoint.now = usedMs * 0.7;
    expect(endpoint.tokens.get(undefined)).toBe('t1');
    endpoint.now = usedMs;
    expect(endpoint.tokens.get(undefined)).toBeInstanceOf(Promise);
    await endpoint.answer(issued('t2', minute));
  });

  it('after a failure, calls fail at once until a pause is over, and the pause grows', async () => {
    const endpoint = new Endpoint();
    const first = Promise.resolve(endpoint.tokens.get(undefined));
    const caught = first.catch((cause: unknown) => cause);
    await endpoint.answer(refusal);
    expect(await caught).toBe(refusal);
    await expect(endpoint.tokens.get(undefined)).rejects.toBe(refusal);
    endpoint.now = 799;
    await expect(endpoint.tokens.get(undefined)).rejects.toBe(refusal);
    expect(endpoint.requests).toBe(1);
    endpoint.now = 1_201;
    const second = Promise.resolve(endpoint.tokens.get(undefined)).catch((cause: unknown) => cause);
    await endpoint.answer(refusal);
    await second;
    endpoint.now += 1_599;
    await expect(endpoint.tokens.get(undefined)).rejects.toBe(refusal);
    expect(endpoint.requests).toBe(2);
    endpoint.now += 802;
    const third = endpoint.tokens.get(undefined);
    await endpoint.answer(issued('t1', minute));
    expect(await third).toBe('t1');
  });

  it('a refused token is replaced once; calls that were refused together share the new one', async () => {
    const endpoint = new Endpoint();
    const first = endpoint.tokens.get(undefined);
    await endpoint.answer(issued('t1', 10 * minute));
    await first;
    const renewed = Promise.all([endpoint.tokens.renew(undefined, 't1'), endpoint.tokens.renew(undefined, 't1')]);
    await endpoint.answer(issued('t2', 10 * minute));
    expect(await renewed).toEqual(['t2', 't2']);
    expect(await endpoint.tokens.renew(undefined, 't1')).toBe('t2');
    expect(await endpoint.tokens.renew(undefined, 't2'), 'the server refuses all tokens').toBeUndefined();
    expect(endpoint.requests).toBe(2);
    endpoint.now = 5_001;
    const later = endpoint.tokens.renew(undefined, 't2');
    await endpoint.answer(issued('t3', minute));
    expect(await later).toBe('t3');
  });

  it('each user has at most one request at a time, and users do not wait for each other', async () => {
    const endpoint = new Endpoint();
    const one = endpoint.tokens.get(alice('a1'));
    const two = endpoint.tokens.get({ token: 'a2', user: 'alice.write' });
    const other = endpoint.tokens.get({ token: 'b1', user: 'bob.read' });
    await turn();
    expect(endpoint.waiting.map(({ subject }) => subject?.token)).toEqual(['a1', 'b1']);
    await endpoint.answer(issued('for a1'));
    await endpoint.answer(issued('for b1'));
    await endpoint.answer(issued('for a2'));
    expect(await Promise.all([one, two, other])).toEqual(['for a1', 'for a2', 'for b1']);
  });

  it("one user's failure does not delay the user's next token, nor other users", async () => {
    const endpoint = new Endpoint();
    const failed = Promise.resolve(endpoint.tokens.get(alice('old'))).catch((cause: unknown) => cause);
    await endpoint.answer(refusal);
    expect(await failed).toBe(refusal);
    const next = endpoint.tokens.get(alice('new'));
    await endpoint.answer(issued('t'));
    expect(await next).toBe('t');
  });
});
