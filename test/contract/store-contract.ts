import { afterEach, describe, expect, it } from 'vitest';
import { appendContract } from './append-contract.ts';
import { limitsContract } from './limits-contract.ts';
import { readContract } from './read-contract.ts';
import { sessionsContract } from './sessions-contract.ts';
import { createFixture, type MakeStore } from './store-fixture.ts';
import { storeModelProperty } from './store-model.ts';

/**
 * What every implementation of `Store` promises: the sentences of src/store/store.ts, one test each.
 * @param name the implementation's, for the names of the tests
 */
export function storeContract(name: string, makeStore: MakeStore): void {
  const fixture = createFixture(makeStore);
  afterEach(() => fixture.closeAll());

  appendContract(name, fixture);
  readContract(name, fixture);
  limitsContract(name, fixture);
  sessionsContract(name, fixture);

  describe(`${name}: the whole store`, () => {
    it('does what the model does, for any sequence of appends, reads, ends and passing time', async () => {
      await storeModelProperty(fixture.open);
    });

    it('can be closed twice', async () => {
      const { store } = await fixture.openSession();
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });
  });
}
