import { Agent } from 'node:http';
import { expect } from 'vitest';
import { environmentNumber } from './environment-number.ts';
import type { Message } from './http-client.ts';
import { callModern } from './modern-client.ts';

/** Requests of the modern era that were sent at once; more connections than this are not opened for them. */
const connections = 200;

/** So many clients call at the same time (`CROWD=1000`). */
export const crowd = environmentNumber('CROWD', 300);

/** A crowd of clients calls at the same time with the same few ids and tokens. Each must receive exactly its own messages. */
export async function expectNoneCrossesOver(url: string): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const ids = [1, '1', 0, -1, 2 ** 53 - 1];
  const clients = Array.from({ length: crowd }, (_, client) => ({ marker: `client-${client}`, id: ids[client % 5] }));
  await Promise.all(
    clients.map(async ({ marker, id }) => {
      const args = { count: 3, gapMs: 5, marker };
      const { messages } = await callModern(url, 'progress', args, { id, meta: { progressToken: id }, agent });
      const methods = messages.map(({ method }: Message) => method);
      expect(methods).toEqual([...Array(3).fill('notifications/progress'), undefined]);
      for (const [index, { params }] of messages.slice(0, 3).entries()) {
        expect(params).toEqual({ progressToken: id, progress: index + 1, total: 3, message: marker });
      }
      expect(messages[3]).toMatchObject({ id, result: { content: [{ text: marker }] } });
    }),
  );
  agent.destroy();
}
