import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { loadMs, noticedMs } from './stage.ts';
import { outcomeOfError, type Talker } from './talker.ts';

/** Far beyond what a fault may cost; the SDK's own limit of 60 s would hide a call that nobody answers. */
const callMs = 75_000;

/** The SDK gives up after two attempts, unless told otherwise. */
const reconnectionOptions = {
  ...{ initialReconnectionDelay: 100, maxReconnectionDelay: 1_000, reconnectionDelayGrowFactor: 1.5 },
  maxRetries: 1_000,
};

/** The official SDK, which resumes its calls as it likes. Each call has an answer or an error, and all of its progress. */
export const sdkClient: Talker = {
  name: 'clients of the SDK',
  everyMs: 1_000,
  atOnce: 4,
  async once({ stage, deed, random, mark, pause, stopped, ledger }) {
    const url = new URL(stage.urlOf(random.chance(0.5) ? 'own' : 'stdio'));
    const openedAt = performance.now();
    let tellError: (seen: string) => void = () => undefined;
    const traced: typeof fetch = async (to, init) => {
      const method = init?.method ?? 'GET';
      const after = new Headers(init?.headers).get('last-event-id');
      const what = `${method}${after === null ? '' : ` after ${after}`}`;
      try {
        const response = await fetch(to, init);
        tellError(`${what}: ${response.status} ${response.headers.get('content-type') ?? ''}`);
        return response;
      } catch (error) {
        tellError(`${what}: ${(error as Error).message}`);
        throw error;
      }
    };
    const transport = new StreamableHTTPClientTransport(url, { reconnectionOptions, fetch: traced });
    const client = new Client({ name: 'soak', version: '1.0.0' });
    let isLost = false;
    client.onerror = ({ message }) => {
      isLost ||= /Session (?:not found|ended)|unknown_session|: Not Found|404/.test(message);
      tellError(message.slice(0, 200));
    };
    const opened = await deed('open', 2_000, async () => {
      await client.connect(transport as Parameters<typeof client.connect>[0]);
      return 'answered';
    });
    if (opened !== 'answered') return void (await client.close());
    for (let n = 0; n < 12 && !isLost && !stopped.aborted; n++) {
      const count = random.integer(5, 30);
      await deed('call', 2_000, async (tell) => {
        let isBroken = false;
        tellError = (seen) => {
          isBroken ||= seen.includes('disconnected');
          tell(seen);
        };
        const told: number[] = [];
        const onprogress = ({ progress }: { progress: number }) => void told.push(progress);
        const args = { count, gapMs: random.integer(5, 40), mark: mark() };
        let hasId = false;
        const onresumptiontoken = (): void => {
          hasId = true;
        };
        // Without an event id, the SDK has nothing to resume, and would wait for its own limit.
        const left = new AbortController();
        const leave = (): void => (isBroken && !hasId ? left.abort() : undefined);
        const leaving = setInterval(leave, noticedMs + loadMs);
        const how = { onprogress, timeout: callMs, onresumptiontoken, signal: left.signal };
        const called = client.callTool({ name: 'count', arguments: args }, how);
        const outcome = await called.then(
          () => 'answered',
          (error: Error & { data?: { reason?: string } }) => error.data?.reason ?? outcomeOfError(error),
        );
        clearInterval(leaving);
        if (left.signal.aborted) return 'broken'; // docs/conformance.md
        const isInOrder = told.every((progress, index) => progress === index + 1);
        if (!isInOrder || (outcome === 'answered' && told.length !== count)) return `progress: ${told}`;
        // The SDK tells `onerror` that the session has ended, and lets the call wait.
        if (isLost) return ledger.mayHaveEnded(openedAt) ? 'answered' : `unknown_session, then ${outcome}`;
        return outcome;
      });
      await pause(random.integer(300, 2_000));
    }
    await transport.terminateSession().catch(() => undefined); // while Redis is away; it ends when it has been idle
    await client.close();
  },
};
