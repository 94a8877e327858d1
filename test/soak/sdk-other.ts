import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { modernRevision } from '../support/modern-client.ts';
import { deliverOneByOne } from '../support/one-by-one.ts';
import { transportsV1 } from '../support/sdk-transports.ts';
import { GivenUp } from './given-up.ts';
import { watchStreams } from './stream-watch.ts';
import { outcomeOfError, type Talker } from './talker.ts';

const givenUp = new GivenUp();

/** The official SDK's client of the modern era. It answers the questions of a server by itself, by any instance. */
export const modernSdk: Talker = {
  name: 'modern clients of the SDK',
  everyMs: 2_000,
  async once({ stage, deed, random, mark, stopped, pause }) {
    const client = new Client(
      { name: 'soak', version: '1.0.0' },
      { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: modernRevision } } },
    );
    let name = '';
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept' as const, content: { name } }));
    let tellBroken: () => void = () => undefined;
    const watched = watchStreams(() => tellBroken());
    const transport = new StreamableHTTPClientTransport(new URL(stage.urlOf('asks')), { fetch: watched });
    const opened = await deed('open', 2_000, async () => {
      await client.connect(transport as Parameters<typeof client.connect>[0]);
      return 'answered';
    });
    for (let n = 0; opened === 'answered' && n < 6 && !stopped.aborted; n++) {
      name = mark();
      const isAsking = random.chance(0.5);
      const count = random.integer(2, 10);
      const done = await deed(isAsking ? 'input request' : 'progress', 1_000 + givenUp.waitMs, async () => {
        const told: number[] = [];
        const onprogress = ({ progress }: { progress: number }) => void told.push(progress);
        const call = isAsking
          ? { name: 'test_input_required_result_elicitation', arguments: {} }
          : { name: 'progress', arguments: { count, gapMs: random.integer(0, 50), marker: name } };
        const left = new AbortController();
        const { signal } = left;
        const broken = new Promise<'broken'>((resolve) => {
          tellBroken = () => resolve('broken');
        });
        const called = client
          .callTool(call, isAsking ? { signal } : { signal, onprogress })
          .then(({ content }) => JSON.stringify(content), outcomeOfSdk);
        const outcome = await Promise.race([called, broken]);
        left.abort(); // a call whose stream has broken would wait for the SDK's own limit
        if (!outcome.includes(name)) return outcome.startsWith('[') ? `wrong answer: ${outcome}` : outcome;
        if (isAsking || told.length === count) return 'answered';
        // What was reported while the way to its client was lost has no place to go to, in an era without resuming.
        const isInOrder = told.every((progress, index) => progress === count - told.length + index + 1);
        return isInOrder ? 'without its first progress' : `progress: ${told}`;
      });
      if (isAsking) givenUp.note(done); // the SDK does not send its answers again
      await pause(random.integer(300, 2_000));
    }
    await client.close();
  },
};

/** The official SDK's client of HTTP+SSE, which cannot resume: its calls end with its stream. */
export const oldSdk: Talker = {
  name: 'HTTP+SSE clients of the SDK',
  everyMs: 3_000,
  async once({ stage, deed, random, mark, stopped, pause }) {
    const client = new ClientV1({ name: 'soak', version: '1.0.0' });
    let tellBroken: (outcome: 'broken') => void = () => undefined;
    const broken = new Promise<'broken'>((resolve) => {
      tellBroken = resolve;
    });
    let isBroken = false;
    const lose = (): void => {
      isBroken = true;
      tellBroken('broken');
    };
    client.onclose = lose;
    // Only a broken stream has no message from the gateway. What a POST is told comes as the error of its call.
    client.onerror = ({ message }) => /SSE error/.test(message) && lose();
    const opened = await deed('open', 2_000, async () => {
      const transport = transportsV1.sse(stage.urlOf('stdio'));
      deliverOneByOne(transport);
      await client.connect(transport as Parameters<typeof client.connect>[0]);
      return 'answered';
    });
    for (let n = 0; opened === 'answered' && n < 10 && !isBroken && !stopped.aborted; n++) {
      const text = mark();
      const count = random.integer(2, 10);
      await deed('call', 1_000, async () => {
        const told: number[] = [];
        const onprogress = ({ progress }: { progress: number }) => void told.push(progress);
        const call = { name: 'count', arguments: { count, gapMs: random.integer(0, 30), mark: text } };
        const called = client
          .callTool(call, undefined, { onprogress, timeout: 75_000 })
          .then(({ content }) => JSON.stringify(content), outcomeOfSdk);
        const outcome = await Promise.race([called, broken]);
        if (outcome === 'broken' || !outcome.startsWith('[')) return isBroken ? 'broken' : outcome;
        if (!outcome.includes(text)) return `wrong answer: ${outcome}`;
        return told.length === count ? 'answered' : `progress: ${told}`;
      });
      await pause(random.integer(300, 2_000));
    }
    await client.close();
  },
};

const outcomeOfSdk = (error: Error & { data?: { reason?: string } }): string =>
  error.data?.reason ?? outcomeOfError(error);
