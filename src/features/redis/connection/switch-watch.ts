import type { Cluster, Redis } from 'ioredis';

/** What sentinels publish when they have replaced a master: `<name> <former host> <port> <new host> <port>`. */
const channel = '+switch-master';

/**
 * Makes a client leave the former master as soon as a sentinel names another one. A former master that lives, such as one
 * whose disk was full, takes writes until a sentinel demotes it, and all of these are lost. (`failoverDetector` of ioredis
 * ends a client for good if the news comes while it connects.)
 * @param sentinels a connection to each, which serves nothing else
 * @returns ends the watch
 */
export function watchSwitches(client: Redis | Cluster, masterName: string, sentinels: readonly Redis[]): () => void {
  /** The client began to connect before the news, so it may have asked a sentinel before the switch. */
  let mayBeLate = false;
  const leave = (): void => {
    if (client.status === 'ready') client.disconnect(true);
    else mayBeLate = true;
  };
  client.on('connecting', () => {
    mayBeLate = false;
  });
  client.on('ready', () => {
    if (mayBeLate) client.disconnect(true);
  });
  for (const sentinel of sentinels) {
    sentinel.on('error', () => undefined); // the client itself reports that no sentinel answers
    sentinel.on('message', (_, text: string) => {
      if (text.startsWith(`${masterName} `)) leave();
    });
    sentinel.subscribe(channel).catch(() => undefined); // only `disconnect` rejects it: it waits for a connection
  }
  return () => {
    for (const sentinel of sentinels) sentinel.disconnect();
  };
}
