import type { ModernObserver } from '../../modern/modern-observer.ts';
import { combineObservers } from '../../ops/combine-observers.ts';
import type { SessionObserver, StreamObserver } from '../../session/session-observer.ts';
import { CallRates } from './call-rates.ts';
import { MessageTap } from './message-tap.ts';
import { ObservedBackends } from './observed-backends.ts';
import { RecentEvents } from './recent-events.ts';
import { StderrLines } from './stderr-lines.ts';

/**
 * What is noted for the status page while nobody looks: numbers, and the newest of what happens seldom. All of it is bounded;
 * messages are looked at only while a page shows their session.
 */
export class ConsoleRecord {
  readonly tap: MessageTap;
  readonly backends: ObservedBackends;
  readonly events = new RecentEvents();
  readonly rates = new CallRates();
  readonly stderr = new StderrLines();

  /** @param inspects true if the page shows what messages say */
  constructor(inspects: boolean) {
    this.tap = new MessageTap(inspects);
    this.backends = new ObservedBackends(this.tap);
  }

  /** The observer of sessions, and this one with it. */
  withSessions(observer: SessionObserver): SessionObserver {
    const { ofSessions } = this.events;
    const noted = combineObservers(observer, {
      ...ofSessions,
      ended: (name, details) => {
        this.backends.forget(name);
        ofSessions.ended?.(name, details);
      },
    });
    return {
      ...noted,
      seeBackends: (name, open) => this.backends.seen(name, open),
      streamsOf: (server, session) => this.#withStreams(observer.streamsOf?.(server, session), server, session),
    };
  }

  /** The observer of servers that all clients share, and this one with it. */
  withShared(observer: ModernObserver): ModernObserver {
    const noted = combineObservers(observer, this.events.ofShared);
    return { ...noted, seeBackends: (server, open) => this.backends.seen({ server }, open) };
  }

  /** A server is not configured any more. */
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
