import type { BackendEnd, Sent } from '../../../core/backend/backend.ts';
import { type CreateInterceptor, Interceptor } from '../../../core/backend/link/link.ts';
import type { Message } from '../../../core/protocol/message/message.ts';
import type { Metrics } from '../metrics.ts';
import type { Tally } from '../series.ts';

/** Counts the backends of all servers, their messages and their ends. */
export class BackendMetrics {
  readonly #metrics: Metrics;
  /** The live backends of each server, including spare ones. */
  readonly #live = new Map<string, Set<Interceptor>>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    metrics.onRefresh(() => {
      for (const [server, backends] of this.#live) metrics.tallies('backends').of(server).value = backends.size;
    });
  }

  /** The live backends by server. */
  get live(): ReadonlyMap<string, ReadonlySet<{ readonly pid: number | undefined }>> {
    return this.#live;
  }

  /** The interceptor that counts the backends of a server and their messages. */
  readonly countBackends = (server: string): CreateInterceptor => {
    const live = this.#live.get(server) ?? new Set<Interceptor>();
    this.#live.set(server, live);
    const tallies = (direction: string) => ({
      messages: this.#metrics.tallies('messages').of(server, direction),
      bytes: this.#metrics.tallies('messageBytes').of(server, direction),
    });
    const starts = this.#metrics.tallies('backendStarts').of(server);
    const countEnd = (reason: BackendEnd['reason']): void => {
      this.#metrics.tallies('backendEnds').of(server, reason).value += 1;
    };
    const counts = { live, sent: tallies('sent'), received: tallies('received'), countEnd };
    return () => {
      starts.value += 1;
      return new BackendCounter(counts);
    };
  };
}

/** Messages in one direction. */
interface MessageTallies {
  readonly messages: Tally;
  readonly bytes: Tally;
}

/** What is counted for one server. */
interface BackendCounts {
  readonly live: Set<Interceptor>;
  readonly sent: MessageTallies;
  readonly received: MessageTallies;
  countEnd(reason: BackendEnd['reason']): void;
}

/** Counts the messages and the end of one backend. */
class BackendCounter extends Interceptor {
  readonly #counts: BackendCounts;

  constructor(counts: BackendCounts) {
    super();
    this.#counts = counts;
    counts.live.add(this);
  }

  override onSent({ text }: Message, result: Sent): void {
    if (result === 'sent') countText(this.#counts.sent, text);
  }

  override onMessages(messages: readonly Message[]): readonly Message[] {
    for (const { text } of messages) countText(this.#counts.received, text);
    return messages;
  }

  override onNoise(text: Buffer, more = 0): void {
    countTexts(this.#counts.received, 1 + more, text.length);
    this.passNoise(text, more);
  }

  override onOver(end: BackendEnd): void {
    this.#counts.live.delete(this);
    this.#counts.countEnd(end.reason);
  }
}

const countText = (tallies: MessageTallies, text: Buffer): void => countTexts(tallies, 1, text.length);

function countTexts(tallies: MessageTallies, messages: number, bytes: number): void {
  tallies.messages.value += messages;
  tallies.bytes.value += bytes;
}
