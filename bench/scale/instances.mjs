// Instances as far as Redis sees them: each has connections of its own, and holds its lease.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** The gateway's own store. Loaded when it is needed, so that whoever has not built it is told so. */
export const storeProgram = fileURLToPath(new URL('../../dist/redis-store.js', import.meta.url));

const renewMs = 2_000;
const pauseMs = 100;
const maxAttempts = 100;
/** Those of a gateway, but for the age: what is written first is read last, and a busy machine takes its time. */
const limits = { maxEvents: 1_000, maxBytes: 8 * 1024 * 1024, maxAgeMs: 7_200_000 };

/** Of all instances: commands that were sent, those that failed, and leases that were lost. */
export const seen = { sent: 0, failed: 0, lost: 0 };

/** An instance that joins and lives until it is closed. */
export async function startInstance(url) {
  const telemetry = {
    commandSeconds: {
      add: () => {
        seen.sent += 1;
      },
    },
    emit: () => {
      seen.failed += 1;
    },
  };
  const { createRedisStore } = await import(storeProgram);
  const store = createRedisStore({ url, limits, telemetry, recordTtlMs: limits.maxAgeMs });
  let name = await join(store);
  let isOpen = true;
  const live = async () => {
    while (isOpen) {
      await delay(renewMs);
      if (!isOpen) return;
      const held = await store.instances.renew(name).then(({ held: isHeld }) => isHeld, unlessUnavailable);
      if (held === undefined) await delay(pauseMs);
      if (held !== false) continue;
      seen.lost += 1;
      name = await join(store);
    }
  };
  const living = live();
  return {
    store,
    /** It is another one after a loss of the data. */
    get name() {
      return name;
    },
    async close() {
      isOpen = false;
      await store.close();
      await living;
    },
  };
}

/** Under a new name. */
async function join({ instances }) {
  const name = randomUUID();
  await patiently(() => instances.join(name));
  return name;
}

/** Asks again as long as the store is away, as gateways do: a machine that is busy keeps answers waiting, too. */
export async function patiently(ask) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await ask();
    } catch (cause) {
      if (attempt >= maxAttempts) throw cause;
      unlessUnavailable(cause);
    }
    await delay(pauseMs);
  }
}

function unlessUnavailable(cause) {
  if (cause.name !== 'StoreUnavailable') throw cause;
}
