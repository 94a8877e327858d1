// Record: the data about sessions, calls and servers that is collected for the status page.

import type { GatewayEvent } from '../../ops/gateway-events.ts';
import { CallRates } from './call-rates.ts';
import { History } from './history.ts';
import { MessageTap } from './message-tap.ts';
import { ObservedBackends } from './observed-backends.ts';
import { RecentEvents } from './recent-events.ts';
import { ServerIncidents } from './server-incidents.ts';
import { SessionFailures } from './session-failures.ts';
import { StderrLines } from './stderr-lines.ts';

/**
 * Collects the data of the status page, also while no page is open: numbers and the newest rare events. All of it is
 * bounded. Messages are read only while a page shows their session.
 */
export class ConsoleRecord {
  /** True if the page shows the contents of messages. */
  readonly inspects: boolean;
  readonly tap: MessageTap;
  readonly backends: ObservedBackends;
  readonly events = new RecentEvents();
  readonly rates = new CallRates();
  readonly failures = new SessionFailures();
  readonly history = new History();
  readonly incidents = new ServerIncidents();
  readonly stderr = new StderrLines();

  /** @param inspects true if the page shows the contents of messages */
  constructor(inspects: boolean) {
    this.inspects = inspects;
    this.tap = new MessageTap(inspects);
    this.backends = new ObservedBackends(this.tap);
  }

  /** Records an event. */
  readonly receive = (event: GatewayEvent): void => {
    switch (event.type) {
      case 'call-ended':
        this.failures.count(event);
        this.history.count(event);
        return this.rates.count(event);
      case 'server-stderr':
        return this.stderr.add(event.server, event.line, event.pid);
      case 'session-ended':
        this.backends.forget(event.name);
        this.failures.forget(event.name);
        break;
      case 'session-adopted':
        this.history.countTakeover();
        break;
      case 'stream-resumed':
        if (event.outcome === 'resumed') this.history.countResume();
        break;
      case 'backend-ended':
        if (event.end.reason !== 'closed') this.incidents.addExit(event.name.server);
        break;
      case 'shared-server-ended':
        if (event.end.reason !== 'closed') this.incidents.addExit(event.server);
        break;
      case 'session-message-dropped':
        if (event.reason === 'noise') this.incidents.addNoise(event.name.server, event.text);
        break;
      case 'shared-message-dropped':
        if (event.reason === 'noise') this.incidents.addNoise(event.server, event.text);
        break;
      case 'server-removed':
        this.rates.forget(event.server);
        this.history.forget(event.server);
        this.incidents.forget(event.server);
        this.stderr.forget(event.server);
    }
    this.events.receive(event);
  };
}
