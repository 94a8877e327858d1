import { hash } from 'node:crypto';
import type { ValueKind } from '../../core/store/shared/shared-data.ts';

/** The keys of one session, which are all in one slot of a cluster. */
export interface SessionKeys {
  /**
   * Hash: the session's record with owner and epoch, and the counts of its log; or the fact that the session has ended.
   */
  readonly record: string;
  /** Stream: one entry per segment of events. The entry's id is `<epoch>-<seq>` of the segment's last event. */
  readonly log: string;
  /** Hash: the newest event of each stream. */
  readonly tails: string;
  /** Hash: the requests without an answer. */
  readonly pending: string;
}

/**
 * Makes the keys of a namespace. Every name that a caller passes is hashed. So a name cannot choose its slot with a
 * brace or collide with another key through a colon. Nobody can read a name in the list of keys (P12).
 * @param prefix the beginning of all keys. A prefix with a brace throws, since it would put all keys into one slot.
 */
export function createKeys(prefix: string) {
  if (/[{}]/.test(prefix)) throw new TypeError('the prefix of Redis keys has no braces');
  return {
    session(key: string): SessionKeys {
      const base = `${prefix}:session:{${hashedName(key)}}`;
      return { record: `${base}:record`, log: `${base}:log`, tails: `${base}:tails`, pending: `${base}:pending` };
    },
    /** String: `alive` or `dead`, for an instance. */
    lease: (name: string) => `${prefix}:instance:{${hashedName(name)}}:lease`,
    /** Hash: where other instances reach each one, by its name. */
    addresses: `${prefix}:addresses`,
    /** String: the name of this generation of the store's data. */
    storeGeneration: `${prefix}:birth`,
    /** Stream: the changes that instances announce to each other. */
    changes: `${prefix}:changes`,
    /** String: a value. */
    value: (kind: ValueKind, name: string) => `${prefix}:${kind}:${hashedName(name)}`,
    /** String: the time at which the debt of a rate is paid. */
    rate: (name: string) => `${prefix}:rate:${hashedName(name)}`,
    /** Hash: what the items of a name take. */
    reserved: (name: string) => `${prefix}:reserved:${hashedName(name)}`,
  };
}

/** The form of a name in a key, of a topic in the stream of changes, and of an item in the hash of what is reserved. */
export const hashedName = (name: string): string => hash('sha256', name, 'base64url');
