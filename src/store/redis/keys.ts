import { hash } from 'node:crypto';

/** The keys of one session; all in one slot of a cluster. */
export interface SessionKeys {
  /** Hash: what the session is, its owner and epoch, and the counts of its log; or that it has ended. */
  readonly record: string;
  /** Stream: one entry per event, `<epoch>-<seq>`. */
  readonly log: string;
  /** Hash: the newest event of each stream. */
  readonly tails: string;
  /** Hash: the requests that have no answer yet. */
  readonly pending: string;
}

/** The keys of one instance; all in one slot of a cluster. */
export interface InstanceKeys {
  /** String: `alive` or `dead`. */
  readonly lease: string;
  /** Stream: one entry per post. */
  readonly mailbox: string;
  /** Strings: how many bytes were ever posted, and freed. */
  readonly posted: string;
  readonly freed: string;
}

/** Every key that the store uses is made here. */
export interface Keys {
  session(key: string): SessionKeys;
  instance(name: string): InstanceKeys;
  /** A pattern (SCAN) of the leases of all instances. */
  readonly allLeases: string;
  /** String: which life of the data this is. */
  readonly storeGeneration: string;
  /** String: a secret that all instances share. */
  secret(name: string): string;
  /** Hash: what the rounds of a call came to. */
  outcomes(call: string): string;
  /** String: whose a thing is that a server made. */
  owner(thing: string): string;
  /** String: when what was used of a rate is paid. */
  rate(name: string): string;
  /** Stream: what instances tell each other of changes. */
  readonly changes: string;
  /** A topic of changes as it stands there. */
  topic(name: string): string;
}

/** Instances whose keys are remembered, since each letter needs them: few live at a time, and each restart is a new name (P8). */
const maxRemembered = 100;

/**
 * Makes the keys of a namespace. What callers name things by is hashed, whatever it is: so it cannot choose its own slot by
 * a brace, collide with another key by a colon, or be read in the list of keys (P12).
 * @param prefix what all keys begin with; throws for one with a brace, which would decide about all slots
 */
export function createKeys(prefix: string): Keys {
  if (/[{}]/.test(prefix)) throw new TypeError('the prefix of Redis keys has no braces');
  const instances = new Map<string, InstanceKeys>();
  return {
    session(key) {
      const base = `${prefix}:session:{${digestOf(key)}}`;
      return { record: `${base}:record`, log: `${base}:log`, tails: `${base}:tails`, pending: `${base}:pending` };
    },
    instance(name) {
      const known = instances.get(name);
      if (known !== undefined) return known;
      const base = `${prefix}:instance:{${digestOf(name)}}`;
      const of = (part: string): string => `${base}:${part}`;
      const made = { lease: of('lease'), mailbox: of('mailbox'), posted: of('posted'), freed: of('freed') };
      if (instances.size >= maxRemembered) instances.clear();
      instances.set(name, made);
      return made;
    },
    allLeases: `${prefix}:instance:*:lease`, // no character of a prefix means anything in a pattern
    storeGeneration: `${prefix}:birth`,
    changes: `${prefix}:changes`,
    topic: digestOf,
    outcomes: (call) => `${prefix}:outcomes:${digestOf(call)}`,
    owner: (thing) => `${prefix}:owner:${digestOf(thing)}`,
    rate: (name) => `${prefix}:rate:${digestOf(name)}`,
    secret: (name) => `${prefix}:secret:${digestOf(name)}`,
  };
}

const digestOf = (name: string): string => hash('sha256', name, 'base64url');
