import { expect, it } from 'vitest';
import { BearerToken } from '../../../../src/core/auth/bearer-token.ts';
import type { UpstreamAnswer } from '../../../../src/core/auth/upstream-request.ts';
import { TokenChecks } from '../../../../src/features/oauth/upstream/token-checks.ts';

/** Checks at a server that answers when the test says so. */
function createChecks() {
  const state = { nowMs: 0 };
  const asked: ((status: number) => void)[] = [];
  const checks = new TokenChecks({
    url: new URL('http://127.0.0.1:1/mcp'),
    transport: 'http',
    send: () =>
      new Promise<UpstreamAnswer>((resolve) => {
        asked.push((status) => resolve({ status, headers: {} } as unknown as UpstreamAnswer));
      }),
    now: () => state.nowMs,
  });
  return { checks, asked, state };
}

const tokenOf = (text: string, address: string) => new BearerToken(text, 'Bearer', address);

it('[G-14] [S-22] [P8] at a server that answers late, strangers with invented tokens lock out no user that it knows', async () => {
  const { checks, asked, state } = createChecks();
  const user = tokenOf('of a user', '192.0.2.1');
  const first = checks.check(user);
  asked.pop()?.(200);
  expect(await first).toEqual({ outcome: 'accepted' });
  for (let n = 0; n < 1_000; n += 1) void checks.check(tokenOf(`invented ${n}`, '192.0.2.9'));
  expect(asked).toHaveLength(16); // a quarter of 64 for one address
  for (let n = 0; n < 1_000; n += 1) void checks.check(tokenOf(`another ${n}`, `198.51.100.${n % 100}`));
  expect(asked).toHaveLength(48); // a quarter stays for known tokens
  state.nowMs += 61_000;
  const again = checks.check(user);
  expect(asked).toHaveLength(49);
  asked[48]?.(503);
  expect(await again).toEqual({ outcome: 'accepted' }); // for as long as the server says nothing
  const refused = checks.check(user);
  asked[49]?.(401);
  expect(await refused).toMatchObject({ outcome: 'refused' });
  expect(await checks.check(user)).toEqual({ outcome: 'unknown' }); // like the token of any stranger
});
