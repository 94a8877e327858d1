import type { LogPosition } from '../../protocol/wire/event-id.ts';
import type { AppendOutcome, EventLog, ReadOutcome } from '../../store/event-log.ts';
import { type EventWriter, maxSentAppends } from './event-writer.ts';

/**
 * The log for an owner's streams. A store may have lost events that it had confirmed to the writer. Before such a loss
 * is believed, the writer appends the events again. Otherwise a resuming client would be told that its event never
 * existed (P4).
 */
export class RepairingLog implements EventLog {
  readonly #log: EventLog;
  readonly #epoch: number;
  readonly #writer: EventWriter;

  constructor(log: EventLog, epoch: number, writer: EventWriter) {
    this.#log = log;
    this.#epoch = epoch;
    this.#writer = writer;
  }

  append(...args: Parameters<EventLog['append']>): Promise<AppendOutcome> {
    return this.#log.append(...args);
  }

  async read(...args: Parameters<EventLog['read']>): Promise<ReadOutcome> {
    const [, stream, after] = args;
    const read = await this.#log.read(...args);
    if (read.outcome === 'ok' ? !read.broken : !this.#isLost(read.outcome, stream, after)) return read;
    this.#writer.check();
    // The appends that may have been under way, and the one behind them.
    for (let ended = 0; ended <= maxSentAppends; ended += 1) await this.#writer.appended();
    return this.#log.read(...args);
  }

  /** For an earlier owner's stream only the newest event is known here. The log must know at least that one. */
  #isLost(outcome: ReadOutcome['outcome'], stream: number, after: LogPosition | undefined): boolean {
    if (after === undefined) return false;
    const { tail, log } = this.#writer.stored;
    const isOwnEvent = after.epoch === this.#epoch && after.seq > 0 && after.seq <= tail;
    return isOwnEvent || (outcome === 'unknown_stream' && after.epoch < this.#epoch && log.tails.has(stream));
  }
}
