// Record: the data about sessions, calls and servers that is collected for the status page.

import type { BackendEnd, ConsoleEvent, ConsoleHost } from '../host.ts';
import { CallCounter } from './calls/call-counter.ts';
import { CallRates } from './calls/call-rates.ts';
import { FailingSpells } from './calls/failing-spells.ts';
import { type Gauges, History } from './calls/history.ts';
import { ToolCounts } from './calls/tool-counts.ts';
import { FailedCalls } from './incidents/failed-calls.ts';
import { Refusals } from './incidents/refusals.ts';
import { Resumes } from './incidents/resumes.ts';
import { ServerIncidents } from './incidents/server-incidents.ts';
import { SessionFailures } from './incidents/session-failures.ts';
import { RecentEvents } from './recent-events.ts';
import { StderrLines } from './stderr-lines.ts';
import { Traffic } from './traffic.ts';

/** The length of the shortest step of the history. */
const tickMs = 1_000;

/**
 * Collects the data of the status page, also while no page is open: numbers and the newest rare events. All of it is
 * bounded.
 */
export class ConsoleRecord {
  readonly events: RecentEvents;
  readonly rates = new CallRates();
  readonly failing = new FailingSpells();
  readonly failures = new SessionFailures();
  readonly failedCalls: FailedCalls;
  readonly tools: ToolCounts;
  readonly refusals: Refusals;
  readonly resumes = new Resumes();
  readonly history = new History((server) => this.rates.timesOfMinute(server));
  readonly incidents: ServerIncidents;
  readonly stderr: StderrLines;
  readonly traffic = new Traffic();
  readonly #host: ConsoleHost;
  readonly #calls: CallCounter;
  #isDraining = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(host: ConsoleHost) {
    this.#host = host;
    this.events = new RecentEvents(host);
    this.tools = new ToolCounts(host);
    this.failedCalls = new FailedCalls(host);
    this.refusals = new Refusals(host);
    this.incidents = new ServerIncidents(host);
    this.stderr = new StderrLines(host);
    this.#calls = new CallCounter(host);
  }

  /** Starts the history. Until then, calls are only counted. */
  start(gauges: () => Gauges, isDraining: () => boolean): void {
    const tick = (): void => {
      this.fold();
      this.history.countEvents(this.traffic.takeEvents());
      this.history.tick(gauges);
      if (isDraining()) this.recordDrain();
    };
    this.#timer ??= setInterval(() => this.#host.contain(tick), tickMs).unref();
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
  readonly receive = (event: ConsoleEvent): void => {
    switch (event.type) {
      case 'call-ended':
        this.failures.count(event);
        // Refused senders have a number of their own. They must not make a server look broken.
        if (event.origin.principal === undefined && event.outcome.kind === 'fault') {
          if (this.#host.refusesSender(event.outcome.reason)) return;
        }
        this.tools.count(event);
        this.failedCalls.add(event);
        return this.#calls.count(event);
      case 'sender-refused':
        this.refusals.describeNext(event.server, event.challenge.reason, event.challenge.detail, event.address);
        break;
      case 'request-refused':
        return this.refusals.add(event.server, event.reason);
      case 'server-stderr':
        return this.stderr.add(event.server, event.line, event.pid);
      case 'session-ended':
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
