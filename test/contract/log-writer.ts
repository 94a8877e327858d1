import type { LogPosition } from '../../src/core/protocol/wire/event-id.ts';
import type { AppendOutcome, NewEvent } from '../../src/core/store/event-log.ts';
import type { SessionRecord } from '../../src/core/store/session-records.ts';
import type { Store } from '../../src/core/store/store.ts';

/** What a test says of an event; numbers and chain are the writer's business. */
export interface Draft {
  readonly stream: number;
  readonly text: string;
  readonly last?: boolean;
}

/** The owner of a session as a store sees it: numbers events, links each stream's, appends. */
export interface LogWriter {
  /** The number of the last event made. */
  readonly tail: number;
  /** The place of an event by its number. */
  at(seq: number): LogPosition;
  /** Makes the next events without appending them: from now on the writer takes them for sent. */
  make(...drafts: readonly Draft[]): readonly NewEvent[];
  /** Makes events and appends them behind the ones made before; says only the word of the outcome. */
  append(...drafts: readonly Draft[]): Promise<AppendOutcome['outcome']>;
}

export const epoch = 1_763_634_000_000;
const firstEpoch = epoch;

export const aRecord = (fields: Partial<SessionRecord> = {}): SessionRecord => ({
  server: 'everything',
  serverDigest: 'digest-1',
  principal: { issuer: '', subject: '', client: '' },
  owner: 'instance-1',
  epoch,
  initialize: Buffer.from('{"jsonrpc":"2.0","id":0,"method":"initialize"}'),
  initialized: Buffer.from('{"jsonrpc":"2.0","id":0,"result":{}}'),
  protocolVersion: '2025-11-25',
  clientState: Buffer.alloc(0),
  clientSaid: Buffer.alloc(0),
  ...fields,
});

/** @param epoch under which it writes; its numbers begin at 1 */
export function createLogWriter(store: Store, key: string, epoch = firstEpoch): LogWriter {
  const newestOf = new Map<number, LogPosition>();
  let tail = 0;

  const make = (...drafts: readonly Draft[]): readonly NewEvent[] =>
    drafts.map(({ stream, text, last = false }) => {
      tail += 1;
      const previous = newestOf.get(stream);
      newestOf.set(stream, { epoch, seq: tail });
      return { stream, seq: tail, previous, data: Buffer.from(text), last };
    });

  return {
    get tail() {
      return tail;
    },
    at: (seq) => ({ epoch, seq }),
    make,
    append: async (...drafts) => (await store.log.append(key, epoch, tail, make(...drafts))).outcome,
  };
}
