import type { Backend, BackendEnd, OpenBackend, RequestIds } from '../../../backend/backend.ts';
import { BackendDecorator } from '../../../backend/backend-decorator.ts';
import type { ForwardedHeaders } from '../../../protocol/http/forwarded-headers.ts';
import type { Message } from '../../../protocol/message/message.ts';
import type { Metrics } from '../metrics.ts';
import type { Tally } from '../series.ts';

/** Counts the backends of all servers, their messages and their ends. */
export class BackendMetrics {
  readonly #metrics: Metrics;
  /** The live backends of each server, including spare ones. */
  readonly #live = new Map<string, Set<Backend>>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
    metrics.onRefresh(() => {
      for (const [server, backends] of this.#live) metrics.tallies('backends').of(server).value = backends.size;
    });
  }

  /** The live backends by server. */
  get live(): ReadonlyMap<string, ReadonlySet<Backend>> {
    return this.#live;
  }

  /** Decorates the opener of a server: counts its backends and their messages. */
  readonly countBackends = (server: string, open: OpenBackend): OpenBackend => {
    const live = this.#live.get(server) ?? new Set();
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
    return (events, options) => {
      starts.value += 1;
      return new CountedBackend(counts, open, events, options);
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
  readonly live: Set<Backend>;
  readonly sent: MessageTallies;
  readonly received: MessageTallies;
  countEnd(reason: BackendEnd['reason']): void;
}

/** A backend whose messages and end are counted. */
class CountedBackend extends BackendDecorator {
  readonly #counts: BackendCounts;

  constructor(counts: BackendCounts, ...backend: ConstructorParameters<typeof BackendDecorator>) {
    super(...backend);
    this.#counts = counts;
    counts.live.add(this);
  }

  override send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const outcome = this.backend.send(message, headers);
    if (outcome === 'sent') countText(this.#counts.sent, message.text);
    return outcome;
  }

  override onMessages(messages: readonly Message[], relatedRequests?: RequestIds): void {
    for (const { text } of messages) countText(this.#counts.received, text);
    this.events.onMessages(messages, relatedRequests);
  }

  override onNoise(text: Buffer, more = 0): void {
    countTexts(this.#counts.received, 1 + more, text.length);
    this.events.onNoise(text, more);
  }

  override onEnd(end: BackendEnd): void {
    this.#counts.live.delete(this);
    this.#counts.countEnd(end.reason);
    this.events.onEnd(end);
  }
}

const countText = (tallies: MessageTallies, text: Buffer): void => countTexts(tallies, 1, text.length);

function countTexts(tallies: MessageTallies, messages: number, bytes: number): void {
  tallies.messages.value += messages;
  tallies.bytes.value += bytes;
}
