import type { MetricsOptions } from '../../../app/features/telemetry.ts';
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

/** The numbers of one tool. */
interface ToolNumbers {
  readonly outcomes: ReadonlyMap<CallOutcome['kind'], Tally>;
  readonly serverSeconds: Distribution;
}

/**
 * The numbers of the tools of one server. A call looks its name up once. A name that is not listed has no entry of its
 * own, because a client can call any name (P8).
 */
class ToolsOfServer {
  readonly #byName = new Map<string, ToolNumbers>();
  readonly #create: (label: string) => ToolNumbers;
  readonly #labelOf: (name: string) => string;

  constructor(metrics: Metrics, server: string, names: ToolNames) {
    this.#labelOf = (name) => names.label(server, 'tool', name);
    this.#create = (label) => ({
      outcomes: new Map(
        outcomesOf('tools/call').map((outcome) => [outcome, metrics.tallies('toolCalls').of(server, label, outcome)]),
      ),
      serverSeconds: metrics.distributions('toolSeconds').of(server, label),
    });
  }

  of(name: string): ToolNumbers {
    return this.#byName.get(name) ?? this.#find(this.#labelOf(name));
  }

  #find(label: string): ToolNumbers {
    const known = this.#byName.get(label);
    if (known !== undefined) return known;
    const created = this.#create(label);
    this.#byName.set(label, created);
    return created;
  }
}

type ToolNames = NonNullable<MetricsOptions['toolNames']>;

/**
 * Counts ended calls and measures the time in the server and in the gateway. Every call runs this code, so it only adds
 * to numbers.
 */
export class CallMetrics {
  readonly #metrics: Metrics;
  readonly #byServer = new Map<string, Readonly<Record<Era, EraNumbers>>>();

  readonly #toolNames: ToolNames | undefined;
  readonly #toolsByServer = new Map<string, ToolsOfServer>();

  /** @param toolNames the names that are labels; undefined to count no tools */
  constructor(metrics: Metrics, toolNames?: ToolNames) {
    this.#metrics = metrics;
    this.#toolNames = toolNames;
  }

  readonly receive = (event: GatewayEvent): void => {
    if (event.type === 'call-ended') this.#count(event);
    else if (event.type === 'request-refused') this.#metrics.tallies('refused').of(event.server, event.reason).add(1);
  };

  #count({ origin, method, name, outcome, durationMs, serverMs, waitedMs }: EndedCall): void {
    const numbers = this.#eraNumbersOf(origin.server)[origin.era];
    const { outcomes, serverSeconds } = numbers.of(method);
    (outcomes.get(outcome.kind) as Tally).value += 1;
    if (outcome.kind === 'fault') this.#metrics.tallies('faults').of(origin.server, outcome.reason).value += 1;
    if (this.#toolNames !== undefined && name !== undefined && method === 'tools/call') {
      const tool = this.#toolsOf(origin.server, this.#toolNames).of(name);
      (tool.outcomes.get(outcome.kind) as Tally).value += 1;
      if (serverMs !== undefined) tool.serverSeconds.add(serverMs / 1_000);
    }
    if (serverMs === undefined) return;
    serverSeconds.add(serverMs / 1_000);
    if (waitedMs > 0) numbers.waitSeconds.add(waitedMs / 1_000);
    if (outcome.kind !== 'left') numbers.gatewaySeconds.add((durationMs - serverMs - waitedMs) / 1_000);
  }

  #toolsOf(server: string, names: ToolNames): ToolsOfServer {
    const known = this.#toolsByServer.get(server);
    if (known !== undefined) return known;
    const created = new ToolsOfServer(this.#metrics, server, names);
    this.#toolsByServer.set(server, created);
    return created;
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
