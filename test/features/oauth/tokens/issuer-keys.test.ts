import { expect, test } from 'vitest';
import { IssuerKeys } from '../../../../src/features/oauth/tokens/issuer-keys.ts';

const key = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };

/** Keys of an issuer whose answers a test decides, at times that it decides. */
function createFixture() {
  const state = { isUp: false, nowMs: 1_000_000, fetches: 0 };
  const keys = new IssuerKeys({
    async fetchKeys() {
      state.fetches += 1;
      if (!state.isUp) throw new Error('down');
      return { keys: [key] };
    },
    staleMs: 60_000,
    now: () => state.nowMs,
    onFailed: () => undefined,
    onRecovered: () => undefined,
  });
  return { state, keys };
}

test('an issuer that comes up after the gateway is found within a second', async () => {
  const { state, keys } = createFixture();
  expect(await keys.refresh()).toBeUndefined();
  state.isUp = true;
  state.nowMs += 1_000;
  expect(await keys.refresh()).toBeDefined();
});

test('[P8] an issuer that is down is asked twice a second at most, and one whose keys are known every 10 s', async () => {
  const { state, keys } = createFixture();
  for (let n = 0; n < 100; n++) {
    await keys.refresh();
    state.nowMs += 10;
  }
  expect(state.fetches).toBe(2);
  Object.assign(state, { isUp: true, nowMs: state.nowMs + 1_000 });
  await keys.refresh();
  Object.assign(state, { isUp: false, nowMs: state.nowMs + 10_000, fetches: 0 });
  for (let n = 0; n < 99; n++) {
    await keys.refresh();
    state.nowMs += 100;
  }
  expect(state.fetches).toBe(1);
});
