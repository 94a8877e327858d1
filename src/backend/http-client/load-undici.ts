import { createRequire } from 'node:module';

type HttpClient = typeof import('undici');

let client: HttpClient | undefined;

/**
 * Loads the HTTP client library for the first server that needs it. Its hundred files would be a fifth of the start
 * time of a gateway that has only STDIO servers.
 */
export function loadUndici(): HttpClient {
  client ??= createRequire(import.meta.url)('undici') as HttpClient;
  return client;
}
