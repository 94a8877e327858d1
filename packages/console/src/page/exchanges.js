/**
 * The messages of a session as a person follows them: a request and its response are one exchange, and the progress
 * notifications between two other messages are one entry.
 */
export class Exchanges {
  /** @type {Exchange[]} newest first */
  #entries = [];
  #max;

  /** @param {number} max the number of entries that are kept */
  constructor(max) {
    this.#max = max;
  }

  /** The entries, newest first. Each has the number of its first message. */
  get entries() {
    return this.#entries;
  }

  clear() {
    this.#entries = [];
  }

  /** Adds a message in the form of the gateway (`PassedMessage`). */
  add(message) {
    const request = message.answers && this.#entries.find(({ number }) => number === message.answers);
    if (request) {
      request.response = message;
      return;
    }
    const repeated = message.repeats && this.#entries.find(({ number }) => number === message.repeats);
    if (repeated) {
      repeated.sent = (repeated.sent ?? 1) + 1;
      return;
    }
    const newest = this.#entries[0];
    const isProgress = message.method === 'notifications/progress';
    if (isProgress && newest?.method === message.method && newest.from === message.from) {
      newest.count += 1;
      newest.size += message.size;
      return;
    }
    this.#add({ ...message, count: 1 });
  }

  /** Adds an entry for messages that the gateway has left out. */
  addSkipped(skipped) {
    const number = (this.#entries[0]?.number ?? 0) + 0.5;
    this.#add({ number, skipped });
  }

  #add(entry) {
    this.#entries = [entry, ...this.#entries].slice(0, this.#max);
  }
}

/** True if the exchange ended with an error, or the message is one. */
export const isFailed = ({ isError, kind, response }) =>
  ((kind === 'response' || kind === 'fault') && isError === true) || response?.isError === true;
