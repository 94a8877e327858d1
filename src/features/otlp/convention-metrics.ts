import type { MetricReading, ServerPlace } from '../../app/features/telemetry.ts';
import type { BackendEnd } from '../../core/backend/backend.ts';
import { AnswerWatcher } from '../../core/backend/link/answer-watcher.ts';
import type { CreateInterceptor, Outgoing } from '../../core/backend/link/link.ts';
import type { OfferedNames } from '../../core/backend/offered-names.ts';
import type { CallOutcome, EndedCall } from '../../core/call/call-events.ts';
import type { GatewayEvent } from '../../core/ops/gateway-events.ts';
import { methodLabel } from '../../core/ops/metrics/method-labels.ts';
import { entryOf } from '../../core/protocol/faults.ts';
import { errorCodeIn } from '../../core/protocol/json.ts';
import { newestModern } from '../../core/protocol/known-revisions.ts';
import { readCallName } from '../../core/protocol/message/call-name.ts';
import type { Message } from '../../core/protocol/message/message.ts';
import { methodOf } from '../../core/protocol/methods/methods.ts';
import type { SessionEndReason } from '../../core/session/end-reason.ts';

type Attributes = Readonly<Record<string, string | number>>;

/** The bounds of all four histograms (OpenTelemetry GenAI, "MCP", "Metrics"). */
const bounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** The most series of one metric, as in the SDK (P8). What is above it shares one series, which the SDK names so, too. */
const maxSeries = 2_000;
const overflow: Attributes = { 'otel.metric.overflow': 'true' };

/** A histogram whose series are found by a text. */
class ConventionHistogram {
  readonly #metric: MetricReading['metric'];
  readonly #series = new Map<string, { readonly attributes: Attributes; readonly counts: number[]; sum: number }>();

  constructor(name: string, help: string) {
    this.#metric = { name, help, type: 'histogram', unit: 's', bounds };
  }

  /**
   * @param key is the same for the same attributes, and only for these
   * @param attributesOf called for the first value of a series
   */
  add(key: string, seconds: number, attributesOf: () => Attributes): void {
    const series = this.#series.get(key) ?? this.#create(key, attributesOf);
    series.sum += seconds;
    let index = 0;
    while (index < bounds.length && seconds > (bounds[index] as number)) index += 1;
    (series.counts[index] as number) += 1;
  }

  read(): MetricReading {
    const points = Array.from(this.#series.values(), ({ attributes, counts, sum }) => ({
      attributes,
      value: { counts, sum },
    }));
    return { metric: this.#metric, points };
  }

  #create(key: string, attributesOf: () => Attributes) {
    const isFull = this.#series.size >= maxSeries;
    const known = isFull ? this.#series.get('') : undefined;
    if (known !== undefined) return known;
    const created = { attributes: isFull ? overflow : attributesOf(), counts: [...bounds.map(() => 0), 0], sum: 0 };
    this.#series.set(isFull ? '' : key, created);
    return created;
  }
}

/**
 * The metrics of the semantic conventions for MCP (OpenTelemetry GenAI, "MCP", "Metrics"): the gateway is the server of
 * its clients and the client of its servers. Names of tools and prompts are those that the server lists. Attributes that
 * grant access or reveal content are left out (P12).
 */
export class ConventionMetrics {
  readonly #names: OfferedNames;
  /** When each session began, and its revision. Every session ends, so there are no more than sessions. */
  readonly #sessions = new Map<string, { readonly startedAt: number; readonly version: string | undefined }>();
  readonly #serverOperations = new ConventionHistogram(
    'mcp.server.operation.duration',
    'MCP request or notification duration as observed on the receiver from the time it was received until the result or ack is sent.',
  );
  readonly #clientOperations = new ConventionHistogram(
    'mcp.client.operation.duration',
    'The duration of the MCP request or notification as observed on the sender from the time it was sent until the response or ack is received.',
  );
  readonly #serverSessions = new ConventionHistogram(
    'mcp.server.session.duration',
    'The duration of the MCP session as observed on the MCP server.',
  );
  readonly #clientSessions = new ConventionHistogram(
    'mcp.client.session.duration',
    'The duration of the MCP session as observed on the MCP client.',
  );

  constructor(names: OfferedNames) {
    this.#names = names;
  }

  read(): readonly MetricReading[] {
    return [this.#serverOperations, this.#clientOperations, this.#serverSessions, this.#clientSessions].map((each) =>
      each.read(),
    );
  }

  /** Counts calls and sessions of clients. */
  readonly receive = (event: GatewayEvent): void => {
    switch (event.type) {
      case 'call-ended':
        return this.#callEnded(event);
      case 'session-started':
        return this.#begin(sessionKey(event.name), event.protocolVersion);
      case 'session-adopted':
        return this.#begin(sessionKey(event.name), undefined);
      case 'session-ended':
        return this.#sessionEnded(sessionKey(event.name), event.name.server, event.reason);
    }
  };

  /** Measures the requests and the sessions of the gateway as a client of this server. */
  measure(server: string, place: ServerPlace): CreateInterceptor {
    const { transport, host, port } = place;
    const common: Attributes = {
      'mcp_gangway.server': server,
      'network.transport': transport,
      ...(host !== undefined && { 'server.address': host }),
      ...(port !== undefined && { 'server.port': port }),
    };
    const at = `${server}\n${transport}\n${host}\n${port}`;
    return () =>
      new OperationTimer({
        onOperation: ({ method, name }, ms, error) => {
          const operation = this.#operation(server, method, name);
          this.#clientOperations.add(`${at}\n${operation.key}\n${error?.type ?? ''}`, ms / 1_000, () => ({
            ...common,
            ...operation.attributes(),
            ...errorAttributes(error),
          }));
        },
        onEnd: (ms, error) =>
          this.#clientSessions.add(`${at}\n${error ?? ''}`, ms / 1_000, () => ({
            ...common,
            ...(error !== undefined && { 'error.type': error }),
          })),
      });
  }

  #callEnded({ origin, method, name, outcome, durationMs }: EndedCall): void {
    const { server, era, session } = origin;
    const version =
      era === 'modern'
        ? newestModern.name
        : this.#sessions.get(sessionKey({ server, session: session ?? '' }))?.version;
    const error = errorOf(outcome);
    const operation = this.#operation(server, method, name);
    this.#serverOperations.add(
      `${server}\n${version}\n${operation.key}\n${error?.type ?? ''}`,
      durationMs / 1_000,
      () => ({
        'mcp_gangway.server': server,
        'network.transport': 'tcp',
        ...(version !== undefined && { 'mcp.protocol.version': version }),
        ...operation.attributes(),
        ...errorAttributes(error),
      }),
    );
  }

  #begin(key: string, version: string | undefined): void {
    this.#sessions.set(key, { startedAt: performance.now(), version });
  }

  #sessionEnded(key: string, server: string, reason: SessionEndReason): void {
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    if (session === undefined) return; // it never started
    const { startedAt, version } = session;
    const error = orderlyEnds.has(reason) ? undefined : reason;
    this.#serverSessions.add(`${server}\n${version}\n${error ?? ''}`, (performance.now() - startedAt) / 1_000, () => ({
      'mcp_gangway.server': server,
      'network.transport': 'tcp',
      ...(version !== undefined && { 'mcp.protocol.version': version }),
      ...(error !== undefined && { 'error.type': error }),
    }));
  }

  /** What was called: a text for look-ups, and the attributes. */
  #operation(server: string, method: string | undefined, name: string | undefined) {
    const label = methodLabel(method);
    const { names } = methodOf(label);
    const listed = names === undefined || name === undefined ? undefined : this.#names.label(server, names, name);
    return {
      key: `${label}\n${listed ?? ''}`,
      attributes: (): Attributes => ({
        'mcp.method.name': label,
        ...(names === 'tool' && { 'gen_ai.operation.name': 'execute_tool' }),
        ...(listed !== undefined && { [nameAttributes[names as 'tool' | 'prompt']]: listed }),
      }),
    };
  }
}

const nameAttributes = { tool: 'gen_ai.tool.name', prompt: 'gen_ai.prompt.name' } as const;

const sessionKey = ({ server, session }: { readonly server: string; readonly session: string }): string =>
  `${server}\n${session}`;

/** Ends of sessions that are no errors. */
const orderlyEnds: ReadonlySet<SessionEndReason> = new Set([
  'deleted',
  'idle',
  'operator',
  'client_gone',
  'superseded',
  'draining',
  'released',
  'moved',
  'reconfigured',
]);

/** How an operation failed. */
interface OperationError {
  readonly type: string;
  readonly code?: number | undefined;
}

function errorOf(outcome: CallOutcome): OperationError | undefined {
  switch (outcome.kind) {
    case 'ok':
      return undefined;
    case 'tool_error':
      return { type: 'tool_error' };
    case 'left':
      return { type: 'client_gone' };
    case 'error':
      return codeError(outcome.code);
    case 'fault':
      return { type: outcome.reason, code: entryOf(outcome.reason).code };
  }
}

/** A server chooses its codes, so only those that JSON-RPC reserves have a series each (P8). */
const codeError = (code: number | undefined): OperationError =>
  code !== undefined && code >= -32_768 && code <= -32_000 ? { type: `${code}`, code } : { type: '_OTHER' };

const errorAttributes = (error: OperationError | undefined): Attributes => ({
  ...(error !== undefined && { 'error.type': error.type }),
  ...(error?.code !== undefined && { 'rpc.response.status_code': `${error.code}` }),
});

/** A request that the server has not answered. */
interface OpenOperation {
  readonly sentAt: number;
  readonly method: string | undefined;
  readonly name: string | undefined;
}

/** Who gets the times of one backend. */
interface OperationSink {
  onOperation(operation: OpenOperation, ms: number, error: OperationError | undefined): void;
  onEnd(ms: number, error: string | undefined): void;
}

/**
 * Measures the requests of one backend, and its whole life. There are no more requests than calls, which are limited: a call
 * that is given up is cancelled at the server.
 */
class OperationTimer extends AnswerWatcher<OpenOperation> {
  readonly #sink: OperationSink;
  readonly #openedAt = performance.now();

  constructor(sink: OperationSink) {
    super();
    this.#sink = sink;
  }

  override onSend(outgoing: Outgoing): Outgoing {
    const { message } = outgoing;
    if (message.cancels !== undefined) this.lose(message.cancels, 'cancelled');
    if (message.kind === 'request')
      this.note(message, {
        sentAt: performance.now(),
        method: message.method,
        name: readCallName(message),
      });
    return outgoing;
  }

  protected override onAnswer(answer: Message, operation: OpenOperation): Message {
    this.#end(operation, responseError(operation.method, answer));
    return answer;
  }

  protected override onLost(operation: OpenOperation, type: string, isSent: boolean): void {
    if (isSent) this.#end(operation, { type });
  }

  override onOver(end: BackendEnd): void {
    super.onOver(end);
    const { reason } = end;
    this.#sink.onEnd(performance.now() - this.#openedAt, reason === 'closed' ? undefined : `server_${reason}`);
  }

  #end(operation: OpenOperation, error: OperationError | undefined): void {
    this.#sink.onOperation(operation, performance.now() - operation.sentAt, error);
  }
}

function responseError(method: string | undefined, response: Message): OperationError | undefined {
  if (response.isError) return codeError(errorCodeIn(response.text));
  return methodOf(method).names === 'tool' && response.reportsToolError ? { type: 'tool_error' } : undefined;
}
