// Instances that share a Redis, the sessions that they own, and what is done with them; whatever is read back is checked.
import { patiently, startInstance } from './instances.mjs';
import { timesOf } from './measure.mjs';
import { dataOf, eventsOf, recordOf, sessionOf, stream } from './sessions.mjs';

/** At once, over all instances; a gateway has as much in flight as its clients give it. */
export const width = 64;

/** Spreads over all sessions what is done with some of them; no divisor of a round number. */
const stride = 7_919;

/** Of a round of renewals: a sweep every 30 s in the quarter of an hour that a round takes (src/core/registry/record-renewal.ts). */
const portionsOfRound = 30;

/**
 * @param url of the Redis
 * @param count of instances
 * @param eventsEach so many events has the call of each session in the end
 */
export async function startFleet(url, count, eventsEach) {
  const instances = await Promise.all(Array.from({ length: count }, () => startInstance(url)));
  return new Fleet(instances, eventsEach);
}

class Fleet {
  sessions = 0;
  #instances;
  #eventsEach;
  /** How many events each session has. */
  #appended = [];

  constructor(instances, eventsEach) {
    this.#instances = instances;
    this.#eventsEach = eventsEach;
  }

  get instances() {
    return this.#instances;
  }

  /** Who has a session, and somebody else. */
  ownerOf(number) {
    return this.#instances[number % this.#instances.length];
  }
  otherThan(number) {
    return this.#instances[(number + 1) % this.#instances.length];
  }

  /** Opens sessions until there are so many. */
  async openUntil(count) {
    const first = this.sessions;
    const times = await timesOf(count - first, width, async (index) => {
      const number = first + index;
      const { store, name } = this.ownerOf(number);
      await patiently(() => store.sessions.create(sessionOf(number).key, recordOf(number, name)));
      this.#appended[number] = 0;
    });
    this.sessions = count;
    return times;
  }

  /** Looks sessions up, as an instance does that a request reaches for another one's. */
  look(count, atOnce) {
    return timesOf(count, atOnce, async (index) => {
      const number = this.#some(index);
      const { sessions } = this.otherThan(number).store;
      const found = await patiently(() => sessions.find(sessionOf(number).key));
      if (found?.server !== 'files') throw new Error(`session ${number} is not found`);
    });
  }

  /** The records of some sessions. */
  async records(count) {
    const found = [];
    for (let index = 0; index < count; index += 1) {
      const number = this.#some(index);
      const { sessions } = this.otherThan(number).store;
      found.push(await patiently(() => sessions.find(sessionOf(number).key)));
    }
    return found;
  }

  /** Appends an event to each of some sessions, one after the other, until there were so many or `isOver`. */
  async appendOneByOne(count, isOver = () => false) {
    const times = [];
    for (let index = 0; times.length < count && index < this.sessions && !isOver(); index += 1) {
      const startedAt = performance.now();
      if (await this.#append(this.#some(index), 1)) times.push(performance.now() - startedAt);
    }
    return Float64Array.from(times).sort();
  }

  /** Appends what is missing to the sessions from one to another, `batch` events at once; a session's one after the other. */
  async appendRest(from, to, batch) {
    const times = [];
    let events = 0;
    const work = async (_, queue) => {
      for (let number = from + queue; number < to; number += width) {
        for (let left = this.#eventsEach - this.#appended[number]; left > 0; left -= batch) {
          const startedAt = performance.now();
          await this.#append(number, batch);
          times.push(performance.now() - startedAt);
          events += Math.min(left, batch);
        }
      }
    };
    await Promise.all(Array.from({ length: width }, work));
    return { events, times: Float64Array.from(times).sort() };
  }

  /** Resumes streams of some sessions at any place, by way of another instance; throws if anything is missing or wrong. */
  async resume(count, atOnce) {
    let events = 0;
    const times = await timesOf(count, atOnce, async (index) => {
      const number = this.#some(index);
      events += await this.#check(number, index % this.#eventsEach);
    });
    return { events, times };
  }

  /**
   * Keeps all sessions from expiring, in portions as an instance has them, one portion after the other. Resolves with how long
   * each took, in milliseconds, in order of size.
   */
  async renew() {
    const times = [];
    for (const [index, { store }] of this.#instances.entries()) {
      const keys = this.#keysOf(index);
      const portion = Math.ceil(keys.length / portionsOfRound);
      for (let from = 0; from < keys.length; from += portion) {
        const startedAt = performance.now();
        await patiently(() => store.sessions.renew(keys.slice(from, from + portion)));
        times.push(performance.now() - startedAt);
      }
    }
    return Float64Array.from(times).sort();
  }

  /** One instance ends, and others take over so many of its sessions. */
  async loseOne(count) {
    const [lost, ...others] = this.#instances;
    const owner = lost.name;
    await lost.store.instances.leave(owner);
    if (!(await others[0].store.instances.declareDead(owner))) throw new Error('an instance that left is alive');
    const own = Math.min(count, Math.ceil(this.sessions / this.#instances.length));
    const times = await timesOf(own, width, async (index) => {
      const number = index * this.#instances.length;
      const { store, name } = others[index % others.length];
      const { key, epoch } = sessionOf(number);
      const { outcome } = await patiently(() => store.sessions.takeOver(key, { owner, epoch }, name));
      if (outcome !== 'taken') throw new Error(`session ${number} could not be taken over: ${outcome}`);
    });
    return times;
  }

  /** Registers all sessions again, as after a loss of the data: each instance so many at once. */
  async registerAll(atOnce) {
    await Promise.all(
      this.#instances.map((instance, index) => {
        const own = Math.ceil((this.sessions - index) / this.#instances.length);
        return timesOf(own, atOnce, (nth) => this.#register(instance, index + nth * this.#instances.length));
      }),
    );
  }

  /** Ends all sessions. */
  endAll() {
    return timesOf(this.sessions, width, (number) => {
      const { sessions } = this.ownerOf(number).store;
      return patiently(() => sessions.end(sessionOf(number).key));
    });
  }

  async close() {
    await Promise.all(this.#instances.map((instance) => instance.close()));
  }

  #some(index) {
    return (index * stride) % this.sessions;
  }

  #keysOf(instance) {
    const own = Math.ceil((this.sessions - instance) / this.#instances.length);
    return Array.from({ length: own }, (_, nth) => sessionOf(instance + nth * this.#instances.length).key);
  }

  /** False if the session has all its events. */
  async #append(number, batch) {
    const tail = this.#appended[number];
    const to = Math.min(tail + batch, this.#eventsEach);
    if (to === tail) return false;
    const { key, epoch } = sessionOf(number);
    const events = eventsOf(number, tail + 1, to, this.#eventsEach);
    this.#appended[number] = to;
    const { log } = this.ownerOf(number).store;
    const { outcome } = await patiently(() => log.append(key, epoch, tail, events));
    if (outcome !== 'stored' && outcome !== 'already')
      throw new Error(`events of session ${number} were not stored: ${outcome}`);
    return true;
  }

  async #check(number, from) {
    const { key, epoch } = sessionOf(number);
    const { log } = this.otherThan(number).store;
    const tail = this.#appended[number];
    let seq = Math.min(from, tail);
    for (;;) {
      const after = seq === 0 ? undefined : { epoch, seq };
      const read = await patiently(() => log.read(key, stream, after, 100));
      if (read.outcome !== 'ok' || read.broken) throw new Error(`session ${number} cannot be resumed at ${seq}`);
      for (const event of read.events) {
        seq += 1;
        if (event.seq !== seq || !event.data.equals(dataOf(number, seq, this.#eventsEach)))
          throw new Error(`session ${number} has another event at ${seq}`);
      }
      if (read.atTail) break;
    }
    if (seq !== tail) throw new Error(`session ${number} ends at ${seq} and not at ${tail}`);
    return tail - Math.min(from, tail);
  }

  async #register({ store, name }, number) {
    const { key, epoch } = sessionOf(number);
    const seq = this.#appended[number];
    const tails = new Map(seq === 0 ? [] : [[stream, { newest: { epoch, seq }, ended: seq === this.#eventsEach }]]);
    const log = { tails, newestStream: seq === 0 ? -1 : stream, pending: [] };
    const said = await patiently(() => store.sessions.register(key, recordOf(number, name), seq, log, 1));
    if (said !== 'registered') throw new Error(`session ${number} could not be registered: ${said}`);
  }
}
