import { hash } from 'node:crypto';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { ValueKind } from '../shared/values.ts';

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

/** The keys of one instance, which are all in one slot of a cluster. */
export interface InstanceKeys {
  /** String: `alive` or `dead`. */
  readonly lease: string;
  /** Stream: one entry per post. */
  readonly mailbox: string;
  /** Strings: how many bytes were ever posted, and freed. */
  readonly posted: string;
  readonly freed: string;
  /** String: where other instances reach this one directly. */
  readonly address: string;
}

/** Makes every key that the store uses. */
export interface Keys {
  session(key: string): SessionKeys;
  instance(name: string): InstanceKeys;
  /** The SCAN pattern of the leases of all instances. */
  readonly allLeases: string;
  /** String: the name of this generation of the store's data. */
  readonly storeGeneration: string;
  /** String: a value. */
  value(kind: ValueKind, name: string): string;
  /** String: the time at which the debt of a rate is paid. */
  rate(name: string): string;
  /** Stream: the changes that instances announce to each other. */
  readonly changes: string;
  /** The form of a change's topic in that stream. */
  topic(name: string): string;
}

/**
 * How many instances' keys are remembered, since each message needs them (P8). Few instances are alive at a time, but
 * each restart brings a new name.
 */
const maxRemembered = 100;

/**
 * Makes the keys of a namespace. Every name that a caller passes is hashed. So a name cannot choose its slot with a
 * brace or collide with another key through a colon. Nobody can read a name in the list of keys (P12).
 * @param prefix the beginning of all keys. A prefix with a brace throws, since it would put all keys into one slot.
 */
export function createKeys(prefix: string): Keys {
  if (/[{}]/.test(prefix)) throw new TypeError('the prefix of Redis keys has no braces');
  const instances = new BoundedMap<string, InstanceKeys>(maxRemembered);
  return {
    session(key) {
      const base = `${prefix}:session:{${digest(key)}}`;
      return { record: `${base}:record`, log: `${base}:log`, tails: `${base}:tails`, pending: `${base}:pending` };
    },
    instance(name) {
      const known = instances.get(name);
      if (known !== undefined) return known;
      const base = `${prefix}:instance:{${digest(name)}}`;
      const instanceKeys = {
        lease: `${base}:lease`,
        mailbox: `${base}:mailbox`,
        posted: `${base}:posted`,
        freed: `${base}:freed`,
        address: `${base}:address`,
      };
      instances.set(name, instanceKeys);
      return instanceKeys;
    },
    allLeases: `${prefix}:instance:*:lease`, // no character of a prefix is special in a pattern
    storeGeneration: `${prefix}:birth`,
    changes: `${prefix}:changes`,
    topic: digest,
    value: (kind, name) => `${prefix}:${kind}:${digest(name)}`,
    rate: (name) => `${prefix}:rate:${digest(name)}`,
  };
}

const digest = (name: string): string => hash('sha256', name, 'base64url');
