import type { NewEvent } from '../../event-log.ts';
import type { RecordChanges, SessionRecord } from '../../session-records.ts';
import type { ValueKind } from '../../shared/values.ts';
import type { Tombstone } from '../memory-sessions.ts';
import type { StoredSession } from '../memory-tables.ts';

/**
 * A change of the tables, as the files keep it. A change is an effect, not a request: whether a request may have its
 * effect was decided before. A change of an unknown session has no effect.
 */
export type Change =
  /** The whole session, in place of what was known under its key. */
  | { readonly kind: 'session'; readonly key: string; readonly session: StoredSession }
  | { readonly kind: 'append'; readonly key: string; readonly epoch: number; readonly events: readonly NewEvent[] }
  | { readonly kind: 'amend'; readonly key: string; readonly changes: RecordChanges }
  | ({ readonly kind: 'owner'; readonly key: string } & Ownership)
  | { readonly kind: 'end'; readonly key: string; readonly tombstone: Tombstone }
  | {
      readonly kind: 'value';
      readonly of: ValueKind;
      readonly name: string;
      readonly value: Buffer;
      readonly ttlMs: number;
    };

/** Who owns a session, and the takeovers that led there. */
export type Ownership = Pick<SessionRecord, 'owner' | 'epoch'> &
  Pick<StoredSession, 'takeovers'> & { readonly term: number | undefined };
