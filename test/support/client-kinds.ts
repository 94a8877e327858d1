import { modernRevision } from './modern-client.ts';
import { connectModern, connectV1, connectV2, type SdkClient } from './sdk-clients.ts';
import { type CommonSpeech, newestSpeech, type Speech } from './sdk-transports.ts';

/** A kind of client: an official SDK client and its protocol. */
export interface ClientKind {
  readonly name: string;
  readonly speech: Speech;
  /** Connects a client to the gateway whose Streamable HTTP endpoint is at `url`. */
  connect(url: string): Promise<SdkClient>;
}

const sdks = [
  ['v1', connectV1],
  ['v2', connectV2],
] as const;

const kindsOf = (name: string, speech: CommonSpeech): readonly ClientKind[] =>
  sdks.map(([sdk, connect]) => ({
    name: `${name} (SDK ${sdk})`,
    speech,
    connect: (url) => connect(url, speech),
  }));

/** The official clients with their default protocol. */
export const newestClients = kindsOf('Streamable HTTP 2025-11-25', newestSpeech);

/** Clients of the two endpoints of 2024-11-05, which can speak a newer revision there. */
export const sseClients = [
  ...kindsOf('HTTP+SSE 2024-11-05', { over: 'sse', revision: '2024-11-05' }),
  ...kindsOf('HTTP+SSE 2025-11-25', { over: 'sse', revision: '2025-11-25' }),
];

/** Clients on WebSocket, which only the older SDK has. */
export const webSocketClients: readonly ClientKind[] = ['2024-11-05', '2025-11-25'].map((revision) => {
  const speech = { over: 'ws', revision } as const;
  return { name: `WebSocket ${revision} (SDK v1)`, speech, connect: (url) => connectV1(url, speech) };
});

/** Clients of the modern era. */
export const modernClients: readonly ClientKind[] = [
  {
    name: `Streamable HTTP ${modernRevision} (SDK v2)`,
    speech: { over: 'http', revision: modernRevision },
    connect: connectModern,
  },
];

/** Every kind of client that a gateway serves. */
export const clientKinds: readonly ClientKind[] = [
  ...newestClients,
  ...kindsOf('Streamable HTTP 2025-06-18', { over: 'http', revision: '2025-06-18' }),
  ...kindsOf('Streamable HTTP 2025-03-26', { over: 'http', revision: '2025-03-26' }),
  ...sseClients,
  ...webSocketClients,
];
