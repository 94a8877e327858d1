import type { GatewayConfig, RemoteServer, ServerConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';
import { timeLimitSignal } from '../../core/util/timing/time-limit.ts';
import { Passthrough } from '../../features/oauth/upstream/passthrough.ts';
import type { SendUpstream } from '../../features/oauth/upstream/upstream-request.ts';
import { createBackpressureGroup } from '../../features/remote/http-client/backpressure-group.ts';
import { openHttpConnection } from '../../features/remote/http-client/http-connection.ts';
import { readJsonBody } from '../../features/remote/http-client/json-body.ts';
import { connectTimeoutMs, readServerTls } from '../servers/remote-openers.ts';

/** The time limit for the answer to a request of the gateway itself, with its body (P8). */
const answerTimeoutMs = 5_000;

/** The size limit of a metadata document (P8). Usual ones have 1 KiB. */
const maxDocumentBytes = 256 * 1024;

/** More requests to one server at a time wait for a connection. */
const maxConnections = 8;

/** Creates the admission of clients that authorize at their server; undefined for a server with `auth: gateway`. */
export type PassthroughTo = (config: GatewayConfig, server: ServerConfig) => Passthrough | undefined;

/** Makes the admissions of servers with `auth: upstream`. Throws as `readTlsFiles` does. */
export function createPassthroughs(): PassthroughTo {
  /** A reload keeps what is known of tokens, as long as the server's configuration is the same object. */
  const known = new WeakMap<ServerConfig, Passthrough>();
  return (config, server) => {
    if (server.auth !== 'upstream') return undefined;
    const found = known.get(server);
    if (found !== undefined) return found;
    const { address } = server;
    if (address === undefined || !('url' in address))
      throw new Error('`auth: upstream` is allowed only for a server at a URL');
    const { url, transport } = address;
    const passthrough = new Passthrough({
      url,
      transport: transport === 'http' || transport === 'sse' ? transport : 'auto',
      send: createSend({ ...server, address }, url),
      publicUrl: config.listen.publicUrl,
      scheme: config.listen.tls.cert === undefined ? 'http' : 'https',
      resources: resourcePathsOf(config, server),
      now: () => performance.now(),
    });
    known.set(server, passthrough);
    return passthrough;
  };
}

/** The path of the resource for each path of a server's endpoints. For the POST endpoint of HTTP+SSE, it is the stream's. */
export const resourcePathsOf = (config: GatewayConfig, server: ServerConfig): Map<string, string> =>
  new Map(
    endpointPathsOf(config, server).flatMap(({ mcp, ws, legacySse }) => [
      [mcp, mcp] as const,
      ...(ws === undefined ? [] : [[ws, ws] as const]),
      ...(legacySse === undefined
        ? []
        : [[legacySse.stream, legacySse.stream] as const, [legacySse.messages, legacySse.stream] as const]),
    ]),
  );

/** Sends requests over connections of their own, to which the operator's certificates for the server apply. */
function createSend(server: RemoteServer, { origin }: URL): SendUpstream {
  const tls = readServerTls(server);
  const connection = openHttpConnection({ origin, headers: server.headers, tls, connectTimeoutMs, maxConnections });
  const flow = createBackpressureGroup();
  return async ({ method, url, headers, body, readsJson = false }) => {
    const signal = timeLimitSignal(answerTimeoutMs);
    const posted = body === undefined ? {} : { body: Buffer.from(body) };
    const answer = await connection.request({ method, url, headers, ...posted, signal });
    const { status } = answer;
    if (!readsJson || status !== 200) {
      answer.body.destroy();
      return { status, headers: answer.headers };
    }
    const bytes = await readJsonBody(answer.body, flow, maxDocumentBytes);
    if (bytes === undefined) throw new Error('the document is too large');
    return { status, headers: answer.headers, json: JSON.parse(bytes.toString()) as unknown };
  };
}
