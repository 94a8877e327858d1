// Record: the data about sessions, calls and servers that is collected for the status page.

import type { ModernObserver } from '../../modern/modern-observer.ts';
import { combineObservers } from '../../ops/combine-observers.ts';
import type { SessionObserver, StreamObserver } from '../../session/session-observer.ts';
import { CallRates } from './call-rates.ts';
import { MessageTap } from './message-tap.ts';
import { ObservedBackends } from './observed-backends.ts';
import { RecentEvents } from './recent-events.ts';
import { StderrLines } from './stderr-lines.ts';

/**
 * Collects the data of the status page, also while no page is open: numbers and the newest rare events. All of it is
 * bounded. Messages are read only while a page shows their session.
 */
export class ConsoleRecord {
  readonly tap: MessageTap;
  readonly backends: ObservedBackends;
  readonly events = new RecentEvents();
  readonly rates = new CallRates();
  readonly stderr = new StderrLines();

  /** @param inspects true if the page shows the contents of messages */
  constructor(inspects: boolean) {
    this.tap = new MessageTap(inspects);
    this.backends = new ObservedBackends(this.tap);
  }

  /** Returns an observer that reports sessions to the given observer and to this record. */
  withSessions(observer: SessionObserver): SessionObserver {
    const { sessionObserver: ofSessions } = this.events;
    const combined = combineObservers(observer, {
      ...ofSessions,
      ended: (name, details) => {
        this.backends.forget(name);
        ofSessions.ended?.(name, details);
      },
    });
    return {
      ...combined,
      seeBackends: (name, open) => this.backends.observe(name, open),
      streamsOf: (server, session) => this.#withStreams(observer.streamsOf?.(server, session), server, session),
    };
  }

  /** Returns an observer that reports shared servers to the given observer and to this record. */
  withShared(observer: ModernObserver): ModernObserver {
    const combined = combineObservers(observer, this.events.sharedServerObserver);
    return { ...combined, seeBackends: (server, open) => this.backends.observe({ server }, open) };
  }

  /** Forgets a server that is no longer configured. */
  forget(server: string): void {
    this.rates.forget(server);
    this.stderr.forget(server);
  }

  #withStreams(observer: StreamObserver | undefined, server: string, session: string | undefined): StreamObserver {
    return {
      resumed: (outcome) => {
        observer?.resumed(outcome);
        if (outcome === 'resumed') this.events.resumed({ server, ...(session !== undefined && { session }) });
      },
      delivered: (count, source) => observer?.delivered(count, source),
    };
  }
}
