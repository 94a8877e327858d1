import type { CallOutcome, EndedCall } from '../../../core/call/call-events.ts';
import type { GatewayEvent } from '../../../core/ops/gateway-events.ts';
import { methodLabel, outcomesOf } from '../../../core/ops/metrics/method-labels.ts';
import type { Era } from '../../../core/protocol/revisions.ts';
import type { Metrics } from '../metrics.ts';
import type { Distribution, Tally } from '../series.ts';

/** The numbers of one method. */
interface MethodNumbers {
  readonly outcomes: ReadonlyMap<CallOutcome['kind'], Tally>;
  readonly serverSeconds: Distribution;
}

/** The numbers of one era of a server. */
class EraNumbers {
  readonly gatewaySeconds: Distribution;
  readonly waitSeconds: Distribution;
  readonly #metrics: Metrics;
  readonly #labels: readonly [server: string, era: Era];
  readonly #byMethod = new Map<string, MethodNumbers>();

  constructor(metrics: Metrics, server: string, era: Era) {
    this.gatewaySeconds = metrics.distributions('requestGatewaySeconds').of(server, era);
    this.waitSeconds = metrics.distributions('requestWaitSeconds').of(server, era);
    this.#metrics = metrics;
    this.#labels = [server, era];
  }

  of(method: string | undefined): MethodNumbers {
    const label = methodLabel(method);
    const known = this.#byMethod.get(label);
    if (known !== undefined) return known;
    const count = (outcome: string): Tally => this.#metrics.tallies('requests').of(...this.#labels, label, outcome);
    const created: MethodNumbers = {
      outcomes: new Map(outcomesOf(label).map((outcome) => [outcome, count(outcome)])),
      serverSeconds: this.#metrics.distributions('requestServerSeconds').of(...this.#labels, label),
    };
    this.#byMethod.set(label, created);
    return created;
  }
}

/**
 * Counts ended calls and measures the time in the server and in the gateway. Every call runs this code, so it only adds
 * to numbers.
 */
export class CallMetrics {
  readonly #metrics: Metrics;
  readonly #byServer = new Map<string, Readonly<Record<Era, EraNumbers>>>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  readonly receive = (event: GatewayEvent): void => {
    if (event.type === 'call-ended') this.#count(event);
    else if (event.type === 'request-refused') this.#metrics.tallies('refused').of(event.server, event.reason).add(1);
  };

  #count({ origin, method, outcome, durationMs, serverMs, waitedMs }: EndedCall): void {
    const numbers = this.#eraNumbersOf(origin.server)[origin.era];
    const { outcomes, serverSeconds } = numbers.of(method);
    (outcomes.get(outcome.kind) as Tally).value += 1;
    if (outcome.kind === 'fault') this.#metrics.tallies('faults').of(origin.server, outcome.reason).value += 1;
    if (serverMs === undefined) return;
    serverSeconds.add(serverMs / 1_000);
    if (waitedMs > 0) numbers.waitSeconds.add(waitedMs / 1_000);
    if (outcome.kind !== 'left') numbers.gatewaySeconds.add((durationMs - serverMs - waitedMs) / 1_000);
  }

  #eraNumbersOf(server: string): Readonly<Record<Era, EraNumbers>> {
    const known = this.#byServer.get(server);
    if (known !== undefined) return known;
    const created = {
      legacy: new EraNumbers(this.#metrics, server, 'legacy'),
      modern: new EraNumbers(this.#metrics, server, 'modern'),
    };
    this.#byServer.set(server, created);
    return created;
  }
}
