import { StoreUnavailable } from '../../../src/core/store/store-unavailable.ts';
import { openFileStore } from '../../../src/features/files/file-store.ts';
import { aRecord, epoch } from '../../contract/log-writer.ts';

/**
 * A process that writes to a store until it is killed, and prints each change that was reported as stored:
 * `<session> <events> <number of the newest event>`. While the store refuses, it prints `refused <reason>`.
 *
 * Arguments: the directory, the prefix of its sessions, and whether the files are tidied all the time.
 */
const [directory = '', prefix = '', tidies = ''] = process.argv.slice(2);
const sessions = 4;
const store = await openFileStore({
  directory,
  limits: { maxEvents: 1_000_000, maxBytes: 100_000_000, maxAgeMs: 3_600_000 },
  syncMs: 20,
  emit: () => undefined,
});

async function repeat<T>(operation: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await operation();
    } catch (cause) {
      if (!(cause instanceof StoreUnavailable)) throw cause;
      process.stdout.write(`refused ${cause.reason}\n`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

async function write(key: string): Promise<void> {
  await repeat(() => store.sessions.create(key, aRecord()));
  process.stdout.write(`${key} 0 0\n`);
  for (let tail = 0; ; ) {
    const size = 1 + Math.floor(Math.random() * 5);
    const first = tail;
    const events = Array.from({ length: size }, (_, index) => {
      const seq = first + index + 1;
      const previous = seq === 1 ? undefined : { epoch, seq: seq - 1 };
      const data = Buffer.from(`${key} ${seq} ${'x'.repeat(Math.floor(Math.random() * 2_000))}`);
      return { stream: 1, seq, previous, data, last: false };
    });
    const { outcome } = await repeat(() => store.log.append(key, epoch, first, events));
    if (outcome !== 'stored' && outcome !== 'already') throw new Error(`append: ${outcome}`);
    tail += size;
    process.stdout.write(`${key} ${size} ${tail}\n`);
    await new Promise(setImmediate);
  }
}

async function tidy(): Promise<void> {
  for (;;) {
    await store.tidy();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

await Promise.all([
  ...Array.from({ length: sessions }, (_, index) => write(`${prefix}-${index}`)),
  ...(tidies === 'yes' ? [tidy()] : []),
]);
