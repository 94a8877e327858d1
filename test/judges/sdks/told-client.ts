// A client of an SDK, which runs in a process of its own and is told on stdin what to do.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { type NetProxy, startNetProxy } from '../../support/net-proxy.ts';
import { withDeadline } from '../../support/wait-for.ts';
import type { Sdk, Started } from './sdks.ts';

/** What a client prints for a step. */
export interface Printed {
  readonly error?: string;
  readonly revision?: string;
  readonly tools?: number;
  readonly text?: string;
  readonly progress?: number;
  /** The answer to a request, as the SDK returns it. */
  readonly result?: unknown;
}

/** A client that is told what to do. */
export interface ToldClient {
  readonly sdk: Sdk;
  readonly name: string;
  /** The way to the server, which a test cuts. A client that starts its server has none. */
  readonly proxy: NetProxy | undefined;
  /** Never rejects: a client that says nothing has failed, too. */
  tell(step: 'connect' | 'list' | 'call' | 'count' | 'cancel'): Promise<Printed>;
  ask(request: { readonly method: string; readonly params: object }): Promise<Printed>;
  stop(): Promise<void>;
}

/** Far beyond the limit of 15 s that the clients set for a call. */
export const silentMs = 60_000;

/** Starts a client, which has a proxy of its own before a URL. Whoever starts it stops it. */
export async function startToldClient(sdk: Sdk, { endpoint, url, key, name }: Started): Promise<ToldClient> {
  const proxy =
    endpoint === 'stdio' ? undefined : await startNetProxy(Number(new URL(url).port), { isRecorded: false });
  const [program = '', ...words] = sdk.command({ endpoint, url: proxy?.urlOf(url) ?? url, key, name });
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-2_000);
  });
  child.stdin.on('error', () => undefined); // its exit says so
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const tell = async (line: string): Promise<Printed> => {
    child.stdin.write(`${line}\n`);
    try {
      const { value, done } = await withDeadline(lines.next(), { deadlineMs: silentMs, what: line });
      if (done === true) return { error: `the client has ended: ${complaints}` };
      return JSON.parse(value);
    } catch (error) {
      return { error: `${error}: ${complaints}` };
    }
  };
  return {
    ...{ sdk, name, proxy, tell },
    ask: (request) => tell(`ask ${JSON.stringify(request)}`),
    async stop() {
      child.kill('SIGKILL');
      await exited;
      await proxy?.close();
    },
  };
}
