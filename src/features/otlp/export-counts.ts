import type { Logger } from 'pino';
import type { MetricKey } from '../../core/ops/metrics/catalogue.ts';
import { redactCredentials } from '../../core/ops/redact-credentials.ts';
import type { FindMeter } from '../../core/util/telemetry/meter.ts';
import type { Signal } from './otlp-settings.ts';

/** The text of an error can be that of a collector, so it is cut. */
const maxDetail = 300;

/** The counts that wait for meters: those of a start, which takes a moment (P8). */
const maxEarly = 100;

/**
 * What became of the spans, metric points and log records for the collector. The log has a line when exports begin to
 * fail, and one when they succeed again, so that a collector that is away floods nobody.
 */
export class ExportCounts {
  readonly #logger: Logger;
  readonly #failing = new Set<Signal>();
  #meterOf: FindMeter<MetricKey> | undefined;
  /** What was counted before there were meters. */
  #early: (readonly [signal: Signal, outcome: string, items: number])[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Counts with these meters, also what was sent before. */
  countWith(meterOf: FindMeter<MetricKey>): void {
    this.#meterOf = meterOf;
    for (const [signal, outcome, items] of this.#early.splice(0)) meterOf('otlpItems', signal, outcome).add(items);
  }

  /** Items have reached the collector. */
  sent(signal: Signal, items: number): void {
    this.#add(signal, 'sent', items);
    if (this.#failing.delete(signal)) this.#logger.info({ signal }, 'the OTLP collector takes exports again');
  }

  /** An export has failed, after the repetitions that the specification allows. */
  failed(signal: Signal, items: number, cause: unknown): void {
    this.lost(signal, items);
    if (this.#failing.has(signal)) return;
    this.#failing.add(signal);
    const detail = redactCredentials(cause instanceof Error ? cause.message : String(cause)).slice(0, maxDetail);
    this.#logger.warn(
      { signal, detail },
      'cannot export to the OTLP collector; requests continue, and further failures are only counted',
    );
  }

  /** Items that were not sent, because too many waited. */
  lost(signal: Signal, items: number): void {
    this.#add(signal, 'lost', items);
  }

  #add(signal: Signal, outcome: 'sent' | 'lost', items: number): void {
    if (this.#meterOf !== undefined) this.#meterOf('otlpItems', signal, outcome).add(items);
    else if (this.#early.length < maxEarly) this.#early.push([signal, outcome, items]);
  }
}
