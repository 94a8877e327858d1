import { modernFixture } from './gateway.ts';
import type { Exchange } from './http-client.ts';
import { openModern } from './modern-client.ts';

/** The SDK's servers take 1,024 subscriptions each. */
const names = ['a', 'b', 'c', 'd', 'e'];
const streamsOfEach = 1_000;

/** Opened at once. */
const together = 50;

/** As many streams as `openManyStreams` opens. */
export const manyStreams = names.length * streamsOfEach;

/** The servers that it opens them at, for `mcpServers` of a file. */
export function serversOfMany(options: object = {}): Record<string, object> {
  const [command, ...args] = modernFixture;
  return Object.fromEntries(names.map((name) => [name, { command, args, ...options }]));
}

/** Opens subscriptions at each of the servers of a gateway; whoever opens them drops them. */
export async function openManyStreams(baseUrl: string): Promise<readonly Exchange[]> {
  const open: Exchange[] = [];
  const listen = (name: string) =>
    openModern(`${baseUrl}/${name}/mcp`, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  for (const name of names) {
    for (let opened = 0; opened < streamsOfEach; opened += together)
      open.push(...(await Promise.all(Array.from({ length: together }, () => listen(name)))));
  }
  return open;
}
