import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import { expectNoLeak } from './canaries.ts';

/** A span in OTLP, with its attributes as an object. */
export interface ExportedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** 2 for a server, 3 for a client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The service name of the span. */
  readonly service: unknown;
}

/** A point of a metric in OTLP, with its attributes as an object. */
export interface ExportedPoint {
  readonly metric: string;
  readonly unit: string;
  readonly scope: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** Of a counter or gauge. */
  readonly value: number | undefined;
  /** Of a histogram. */
  readonly count: number | undefined;
  readonly sum: number | undefined;
  readonly bounds: readonly number[] | undefined;
}

/** A log record in OTLP, with its attributes as an object. */
export interface ExportedLog {
  readonly severityText: string;
  readonly severityNumber: number;
  readonly body: unknown;
  readonly eventName: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
}

/** Receives telemetry like an OpenTelemetry collector: OTLP over HTTP, in JSON. Bodies in protobuf are kept as they are. */
export interface Collector {
  readonly url: string;
  spans(): readonly ExportedSpan[];
  /** The newest point of each series. */
  points(): readonly ExportedPoint[];
  logs(): readonly ExportedLog[];
  /** The resources that were named, each once. */
  resources(): readonly Readonly<Record<string, unknown>>[];
  /** The paths and the texts of the bodies in protobuf. */
  binary(): readonly { readonly path: string; readonly texts: readonly string[] }[];
  close(): void;
}

type Value = Readonly<Record<string, unknown>>;

interface Attribute {
  readonly key: string;
  readonly value: Value;
}

interface Resource {
  readonly attributes: readonly Attribute[];
}

interface DataPoint {
  readonly attributes: readonly Attribute[];
  readonly asDouble?: number;
  readonly asInt?: string | number;
  readonly count?: string | number;
  readonly sum?: number;
  readonly explicitBounds?: readonly number[];
}

interface Exported {
  readonly resourceSpans?: readonly {
    readonly resource: Resource;
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<ExportedSpan, 'attributes' | 'service'> & {
        readonly attributes: readonly Attribute[];
      })[];
    }[];
  }[];
  readonly resourceMetrics?: readonly {
    readonly resource: Resource;
    readonly scopeMetrics: readonly {
      readonly scope: { readonly name: string };
      readonly metrics: readonly ({ readonly name: string; readonly unit: string } & Partial<
        Record<'sum' | 'gauge' | 'histogram', { readonly dataPoints: readonly DataPoint[] }>
      >)[];
    }[];
  }[];
  readonly resourceLogs?: readonly {
    readonly resource: Resource;
    readonly scopeLogs: readonly {
      readonly logRecords: readonly (Omit<ExportedLog, 'attributes' | 'body'> & {
        readonly body?: Value;
        readonly attributes: readonly Attribute[];
      })[];
    }[];
  }[];
}

const heldBy = (value: Value | undefined): unknown => {
  const [held] = Object.values(value ?? {});
  const nested = (held as { readonly values?: readonly Attribute[] } | undefined)?.values;
  return value !== undefined && 'kvlistValue' in value && nested !== undefined ? valuesOf(nested) : held;
};

const valuesOf = (attributes: readonly Attribute[]): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, heldBy(value)]));

/** Starts a collector, on any free port by default. The caller closes it. */
export async function startCollector(port = 0): Promise<Collector> {
  const spans: ExportedSpan[] = [];
  const points = new Map<string, ExportedPoint>();
  const logs: ExportedLog[] = [];
  const resources = new Map<string, Record<string, unknown>>();
  const binary: { path: string; texts: readonly string[] }[] = [];
  const noteResource = ({ attributes }: Resource): Record<string, unknown> => {
    const values = valuesOf(attributes);
    resources.set(JSON.stringify(values), values);
    return values;
  };
  const takeJson = ({ resourceSpans = [], resourceMetrics = [], resourceLogs = [] }: Exported): void => {
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = noteResource(resource)['service.name'];
      for (const span of scopeSpans.flatMap((scope) => scope.spans))
        spans.push({ ...span, attributes: valuesOf(span.attributes), service });
    }
    for (const { resource, scopeMetrics } of resourceMetrics) {
      noteResource(resource);
      for (const { scope, metrics } of scopeMetrics)
        for (const { name, unit, sum, gauge, histogram } of metrics)
          for (const point of (sum ?? gauge ?? histogram)?.dataPoints ?? []) {
            const attributes = valuesOf(point.attributes);
            const value = point.asDouble ?? point.asInt;
            points.set(JSON.stringify([name, attributes]), {
              metric: name,
              unit,
              scope: scope.name,
              attributes,
              value: value === undefined ? undefined : Number(value),
              count: point.count === undefined ? undefined : Number(point.count),
              sum: point.sum,
              bounds: point.explicitBounds,
            });
          }
    }
    for (const { resource, scopeLogs } of resourceLogs) {
      noteResource(resource);
      for (const record of scopeLogs.flatMap((scope) => scope.logRecords))
        logs.push({ ...record, body: heldBy(record.body), attributes: valuesOf(record.attributes) });
    }
  };
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const type = request.headers['content-type'] ?? '';
    expectNoLeak('an export to a collector', body.toString('latin1'));
    if (type.includes('json')) takeJson(JSON.parse(body.toString()));
    else binary.push({ path: request.url ?? '', texts: textsInProtobuf(body) });
    response.writeHead(200, { 'content-type': type }).end(type.includes('json') ? '{}' : '');
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () => spans,
    points: () => [...points.values()],
    logs: () => logs,
    resources: () => [...resources.values()],
    binary: () => binary,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** All printable texts in a message of protobuf, in whatever field: a field of bytes is read as a message if it is one. */
function textsInProtobuf(bytes: Buffer): string[] {
  const texts: string[] = [];
  const varintAt = (at: number): [value: number, next: number] => {
    let value = 0;
    for (let index = at; index < bytes.length && index < at + 10; index += 1) {
      const byte = bytes[index] as number;
      value += (byte & 0x7f) * 2 ** (7 * (index - at));
      if (byte < 0x80) return [value, index + 1];
    }
    return [Number.NaN, bytes.length + 1];
  };
  for (let at = 0; at < bytes.length; ) {
    const [key, start] = varintAt(at);
    const kind = key % 8;
    if (kind === 2) {
      const [length, begin] = varintAt(start);
      if (!(begin + length <= bytes.length)) throw new Error('no protobuf');
      const field = bytes.subarray(begin, begin + length);
      if (/^[\x20-\x7e]+$/.test(field.toString('latin1'))) texts.push(field.toString());
      try {
        texts.push(...textsInProtobuf(field));
      } catch {
        // The field is no message.
      }
      at = begin + length;
    } else if (kind === 0) at = varintAt(start)[1];
    else if (kind === 1 || kind === 5) at = start + (kind === 1 ? 8 : 4);
    else throw new Error('no protobuf');
    if (at > bytes.length) throw new Error('no protobuf');
  }
  return texts;
}

/** Variables of a gateway that exports to a collector. */
export const exportingTo = ({ url }: Pick<Collector, 'url'>): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
});

/** The client's span of its requests, and the header that carries it. */
export const client = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: '00f067aa0ba902b7' };
export const traceparent = `00-${client.traceId}-${client.spanId}-01`;

/** The one span of a request from a client, and the spans of the requests to the server. */
export interface Sides {
  readonly outer: ExportedSpan;
  readonly inner: readonly ExportedSpan[];
}

/** The spans of this name. Exactly one must be for the client. */
export function sidesOf(collector: Collector, name: string): Sides {
  const named = collector.spans().filter((span) => span.name === name);
  const [outer, ...others] = named.filter(({ kind }) => kind === 2);
  if (outer === undefined || others.length > 0) {
    throw new Error(`${outer === undefined ? 0 : others.length + 1} spans of ${name} were told, not 1`);
  }
  return { outer, inner: named.filter(({ kind }) => kind === 3) };
}

/** Expects that the trace continues from the client through the gateway to the server. */
export function expectChain({ outer, inner }: Sides, sent: unknown): void {
  expect(outer).toMatchObject({ traceId: client.traceId, parentSpanId: client.spanId, service: 'mcp-gangway' });
  expect(inner).toMatchObject([{ traceId: client.traceId, parentSpanId: outer.spanId }]);
  expect(sent).toBe(`00-${client.traceId}-${inner[0]?.spanId}-01`);
}
