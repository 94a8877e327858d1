import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import { createInbox } from '../support/wait-for.ts';
import type { Compose, GatewayName } from './compose.ts';

/** The defaults: a lost owner's calls are answered within lease + 2 s (P3). */
export const answeredWithinMs = 6_000 + 2_000;

/** What `count` reports as progress. */
export const countTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

interface Count {
  readonly to: number;
  readonly everyMs: number;
}

/** A client of the official SDK, and which gateway served each of its requests. It is closed with the test. */
export async function connectTo(compose: Compose, endpoint: string) {
  const served = createInbox<{ readonly method: string; readonly gateway: GatewayName | undefined }>();
  const client = new Client({ name: 'docker-test', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(new URL(endpoint), {
    // Both gateways may be out of nginx's rotation for some seconds after one of them was killed.
    reconnectionOptions: {
      initialReconnectionDelay: 500,
      maxReconnectionDelay: 2_000,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: 20,
    },
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      const isResume = new Headers(init?.headers).has('last-event-id');
      const { method = 'listen' } = typeof init?.body === 'string' ? JSON.parse(init.body) : {};
      served.push({
        method: isResume ? 'resume' : method,
        gateway: compose.gatewayAt(response.headers.get('x-upstream')),
      });
      return response;
    },
  });
  onTestFinished(() => client.close());
  await client.connect(transport as Parameters<typeof client.connect>[0]);

  const textOf = (result: object): string => (result as { content: { text: string }[] }).content[0]?.text ?? '';
  const count = (args: Count, signal?: AbortSignal) => {
    const steps = createInbox<number>();
    const onprogress = ({ progress }: { progress: number }) => steps.push(progress);
    const options = { onprogress, timeout: 120_000, ...(signal && { signal }) };
    const text = client.callTool({ name: 'count', arguments: { ...args } }, options).then(textOf);
    text.catch(() => undefined); // told to who awaits it
    return { steps, text };
  };
  return {
    served,
    resumes: () => served.items.filter(({ method }) => method === 'resume').length,
    /** On which gateway's host its server runs. */
    where: async () => textOf(await client.callTool({ name: 'where', arguments: {} })) as GatewayName,
    /** The gateway that opened the session. */
    opener: () => served.items.find(({ method }) => method === 'initialize')?.gateway as GatewayName,
    count,
    /** A count whose answer comes by way of this gateway: tried until nginx chooses so. */
    async countBy(gateway: GatewayName, args: Count) {
      for (let attempt = 0; attempt < 10; attempt++) {
        const abort = new AbortController();
        const started = count(args, abort.signal);
        await started.steps.next();
        const chosen = served.items.findLast(({ method }) => method === 'tools/call');
        if (chosen?.gateway === gateway) return started;
        abort.abort();
        await served.next(({ method }) => method === 'notifications/cancelled');
        // The cancellation was one request; after one more it is the other gateway's turn.
        await client.ping();
      }
      throw new Error(`nginx sends nothing to ${gateway}`);
    },
  };
}
