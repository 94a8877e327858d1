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

/** Makes every key that the store uses. */
export interface Keys {
  session(key: string): SessionKeys;
  /** String: `alive` or `dead`, for an instance. */
  lease(name: string): string;
  /** The SCAN pattern of the leases of all instances. */
  readonly allLeases: string;
  /** Hash: where other instances reach each one, by its name. */
  readonly addresses: string;
  /** String: the name of this generation of the store's data. */
  readonly storeGeneration: string;
  /** String: a value. */
  value(kind: ValueKind, name: string): string;
  /** String: the time at which the debt of a rate is paid. */
  rate(name: string): string;
  /** Hash: what the items of a name take. */
  reserved(name: string): string;
  /** Stream: the changes that instances announce to each other. */
  readonly changes: string;
  /** The form of a change's topic in that stream. */
  topic(name: string): string;
  /** The form of an item's name in the hash of what is reserved. */
  item(name: string): string;
}

/**
 * Makes the keys of a namespace. Every name that a caller passes is hashed. So a name cannot choose its slot with a
 * brace or collide with another key through a colon. Nobody can read a name in the list of keys (P12).
 * @param prefix the beginning of all keys. A prefix with a brace throws, since it would put all keys into one slot.
 */
export function createKeys(prefix: string): Keys {
  if (/[{}]/.test(prefix)) throw new TypeError('the prefix of Redis keys has no braces');
  return {
    session(key) {
      const base = `${prefix}:session:{${digest(key)}}`;
      return { record: `${base}:record`, log: `${base}:log`, tails: `${base}:tails`, pending: `${base}:pending` };
    },
    lease: (name) => `${prefix}:instance:{${digest(name)}}:lease`,
    addresses: `${prefix}:addresses`,
    allLeases: `${prefix}:instance:*:lease`, // no character of a prefix is special in a pattern
    storeGeneration: `${prefix}:birth`,
    changes: `${prefix}:changes`,
    topic: digest,
    item: digest,
    value: (kind, name) => `${prefix}:${kind}:${digest(name)}`,
    rate: (name) => `${prefix}:rate:${digest(name)}`,
    reserved: (name) => `${prefix}:reserved:${digest(name)}`,
  };
}

const digest = (name: string): string => hash('sha256', name, 'base64url');
