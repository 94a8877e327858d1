import { afterEach, describe, expect, it } from 'vitest';
import { appendContract } from './append-contract.ts';
import { batchesContract } from './batches-contract.ts';
import { changesContract } from './changes-contract.ts';
import { leasesContract } from './leases-contract.ts';
import { limitsContract } from './limits-contract.ts';
import { ratesContract } from './rates-contract.ts';
import { readContract } from './read-contract.ts';
import { recordsContract } from './records-contract.ts';
import { reservationsContract } from './reservations-contract.ts';
import { sessionsContract } from './sessions-contract.ts';
import { createFixture, type MakeStore } from './store-fixture.ts';
import { storeModelProperty } from './store-model.ts';
import { takeoverContract } from './takeover-contract.ts';
import { valuesContract } from './values-contract.ts';

/**
 * What every implementation of `Store` promises: the sentences of the interfaces in src/core/store/, one test each.
 * @param name the implementation's, for the names of the tests
 * @param options `modelRuns`: how many random sequences of commands are tried; `isShared`: several instances can use it
 */
export function storeContract(name: string, makeStore: MakeStore, { modelRuns = 200, isShared = true } = {}): void {
  const fixture = createFixture(makeStore);
  afterEach(() => fixture.closeAll());

  appendContract(name, fixture);
  batchesContract(name, fixture);
  readContract(name, fixture);
  limitsContract(name, fixture);
  sessionsContract(name, fixture);
  recordsContract(name, fixture);
  takeoverContract(name, fixture);
  if (isShared) leasesContract(name, fixture);
  valuesContract(name, fixture);
  changesContract(name, fixture);
  ratesContract(name, fixture);
  reservationsContract(name, fixture);

  describe(`${name}: the whole store`, () => {
    it('does what the model does, for any sequence of appends, reads, takeovers, registrations, ends and passing time', async () => {
      await storeModelProperty(fixture.open, modelRuns);
    });

    it('can be closed twice', async () => {
      const { store } = await fixture.openSession();
      await store.close();
      await expect(store.close()).resolves.toBeUndefined();
    });
  });
}
