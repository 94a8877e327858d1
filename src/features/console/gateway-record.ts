import { type ConsoleEvent, type ConsoleEventType, ConsoleRecord } from '@mcp-gangway/console';
import type { ConsoleOptions } from '../../app/features/telemetry.ts';
import type { GatewayEvent } from '../../core/ops/gateway-events.ts';
import { createConsoleHost } from './console-host.ts';
import { MessageTap } from './message-tap.ts';
import { ObservedBackends } from './observed-backends.ts';

/** The events that the console records. They fit to what it declares: otherwise, this file does not compile. */
type RecordedEvent = Extract<GatewayEvent, { type: ConsoleEventType }>;
const asRecorded = (event: GatewayEvent): ConsoleEvent => event as RecordedEvent;

/** What is recorded for the page, also while nobody has opened it. */
export class GatewayRecord {
  /** True if the page shows the contents of messages. */
  readonly inspects: boolean;
  readonly record: ConsoleRecord;
  readonly tap: MessageTap;
  readonly backends: ObservedBackends;

  constructor({ inspects, names }: ConsoleOptions) {
    this.inspects = inspects;
    this.record = new ConsoleRecord(createConsoleHost(names));
    this.tap = new MessageTap(inspects);
    this.backends = new ObservedBackends(this.tap);
  }

  /** Records an event. Events of other types change nothing. */
  readonly receive = (event: GatewayEvent): void => {
    if (event.type === 'session-ended') this.backends.forget(event.name.session);
    if (event.type === 'call-ended' && event.id !== undefined && event.outcome.kind === 'fault' && this.tap.isWatched)
      this.tap.failed(event.origin, event.id, event.outcome.reason);
    this.record.receive(asRecorded(event));
  };
}
