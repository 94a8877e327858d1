import type { Backend, OpenBackend } from '../../../backend/backend.ts';
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
    const starts = this.#metrics.tallies('backendStarts').of(server);
    const tallies = (direction: string) => ({
      messages: this.#metrics.tallies('messages').of(server, direction),
      bytes: this.#metrics.tallies('messageBytes').of(server, direction),
    });
    const sent = tallies('sent');
    const received = tallies('received');
    return (events, options) => {
      starts.value += 1;
      const backend = open(
        {
          onMessages(messages, relatedRequests) {
            received.messages.value += messages.length;
            for (const { text } of messages) received.bytes.value += text.length;
            events.onMessages(messages, relatedRequests);
          },
          onNoise: (text) => {
            received.messages.value += 1;
            received.bytes.value += text.length;
            events.onNoise(text);
          },
          onUnanswered: (ids, reason, isFinal) => events.onUnanswered(ids, reason, isFinal),
          onState: (state) => events.onState?.(state),
          onEnd: (end) => {
            live.delete(countedBackend);
            this.#metrics.tallies('backendEnds').of(server, end.reason).value += 1;
            events.onEnd(end);
          },
        },
        options,
      );
      const countedBackend = new CountedBackend(backend, sent);
      live.add(countedBackend);
      return countedBackend;
    };
  };
}

/** A backend whose sent messages are counted. */
class CountedBackend extends BackendDecorator {
  readonly #sent: { readonly messages: Tally; readonly bytes: Tally };

  constructor(backend: Backend, sent: { readonly messages: Tally; readonly bytes: Tally }) {
    super(backend);
    this.#sent = sent;
  }

  send(message: Message, headers?: ForwardedHeaders): ReturnType<Backend['send']> {
    const outcome = this.backend.send(message, headers);
    if (outcome !== 'sent') return outcome;
    this.#sent.messages.value += 1;
    this.#sent.bytes.value += message.text.length;
    return outcome;
  }
}
