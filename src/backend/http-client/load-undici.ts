import { createRequire } from 'node:module';

type HttpClient = typeof import('undici');

let client: HttpClient | undefined;

/**
 * The library that speaks HTTP with servers. It is loaded with the first server that needs it: its hundred files would be a fifth of
 * the start of a gateway that has only programs.
 */
export function loadUndici(): HttpClient {
  client ??= createRequire(import.meta.url)('undici') as HttpClient;
  return client;
}
