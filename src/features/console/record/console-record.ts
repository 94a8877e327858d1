// Record: the data about sessions, calls and servers that is collected for the status page.

import type { ConsoleOptions } from '../../../app/features/telemetry.ts';
import type { BackendEnd } from '../../../core/backend/backend.ts';
import type { GatewayEvent } from '../../../core/ops/gateway-events.ts';
import { contain } from '../../../core/util/boundary.ts';
import { CallCounter } from './calls/call-counter.ts';
import { CallRates } from './calls/call-rates.ts';
import { FailingSpells } from './calls/failing-spells.ts';
import { type Gauges, History } from './calls/history.ts';
import { ToolCounts } from './calls/tool-counts.ts';
import { Refusals, refusesSender } from './incidents/refusals.ts';
import { Resumes } from './incidents/resumes.ts';
import { ServerIncidents } from './incidents/server-incidents.ts';
import { SessionFailures } from './incidents/session-failures.ts';
import { MessageTap } from './message-tap.ts';
import { ObservedBackends } from './observed-backends.ts';
import { RecentEvents } from './recent-events.ts';
import { StderrLines } from './stderr-lines.ts';
import { Traffic } from './traffic.ts';

/** The length of the shortest step of the history. */
const tickMs = 1_000;

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
  readonly failing = new FailingSpells();
  readonly failures = new SessionFailures();
  readonly tools: ToolCounts;
  readonly refusals = new Refusals();
  readonly resumes = new Resumes();
  readonly history = new History((server) => this.rates.timesOfMinute(server));
  readonly incidents = new ServerIncidents();
  readonly stderr = new StderrLines();
  readonly traffic = new Traffic();
  readonly #calls = new CallCounter();
  #isDraining = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ inspects, names }: ConsoleOptions) {
    this.inspects = inspects;
    this.tools = new ToolCounts(names);
    this.tap = new MessageTap(inspects);
    this.backends = new ObservedBackends(this.tap);
  }

  /** Starts the history. Until then, calls are only counted. */
  start(gauges: () => Gauges, isDraining: () => boolean): void {
    const tick = (): void => {
      this.fold();
      this.history.countEvents(this.traffic.takeEvents());
      this.history.tick(gauges);
      if (isDraining()) this.recordDrain();
    };
    this.#timer ??= setInterval(() => contain('admin', tick), tickMs).unref();
  }

  /** Records that this instance drains, once. */
  recordDrain(): void {
    if (!this.#isDraining) this.events.addDrain();
    this.#isDraining = true;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Adds the newest calls to the rates and the history. */
  fold(): void {
    this.#calls.fold((server, counts) => {
      this.rates.add(server, counts);
      if (counts.failures > 0) this.failing.record(server, this.rates.recent(server));
      this.history.add(server, counts);
    });
  }

  #addExit(server: string, { reason, detail, lastOutput }: BackendEnd): void {
    if (reason !== 'closed') this.incidents.addExit(server, detail, lastOutput);
  }

  /** Records an event. */
  readonly receive = (event: GatewayEvent): void => {
    switch (event.type) {
      case 'call-ended':
        this.failures.count(event);
        // Refused senders have a number of their own. They must not make a server look broken.
        if (event.origin.principal === undefined && event.outcome.kind === 'fault') {
          if (refusesSender(event.outcome.reason)) return;
        }
        this.tools.count(event);
        return this.#calls.count(event);
      case 'session-call-failed':
        this.failures.countFault(event);
        if (this.tap.isWatched) this.tap.failed(event.origin, event.id, event.reason);
        return;
      case 'sender-refused':
        this.refusals.describeNext(event.server, event.challenge.reason, event.challenge.detail, event.address);
        break;
      case 'request-refused':
        return this.refusals.add(event.server, event.reason);
      case 'server-stderr':
        return this.stderr.add(event.server, event.line, event.pid);
      case 'session-ended':
        this.backends.forget(event.name.session);
        this.failures.forget(event.name);
        break;
      case 'session-adopted':
        this.history.countTakeover();
        break;
      case 'stream-resumed':
        this.resumes.add(event.server, event.session, event.outcome);
        if (event.outcome === 'resumed') this.history.countResume();
        break;
      case 'backend-ended':
        this.#addExit(event.name.server, event.end);
        break;
      case 'shared-server-ended':
        this.#addExit(event.server, event.end);
        break;
      case 'session-message-dropped':
        if (event.reason === 'noise') this.incidents.addNoise(event.name.server, event.text, event.count);
        break;
      case 'shared-message-dropped':
        if (event.reason === 'noise') this.incidents.addNoise(event.server, event.text, event.count);
        break;
      case 'server-removed':
        this.#calls.forget(event.server);
        this.rates.forget(event.server);
        this.failing.forget(event.server);
        this.tools.forget(event.server);
        this.history.forget(event.server);
        this.incidents.forget(event.server);
        this.stderr.forget(event.server);
        this.refusals.forget(event.server);
    }
    this.events.receive(event);
  };
}
