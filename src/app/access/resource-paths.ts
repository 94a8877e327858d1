import type { GatewayConfig, ServerConfig } from '../../config/config.ts';
import { endpointPathsOf } from '../../config/endpoint-paths.ts';

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
