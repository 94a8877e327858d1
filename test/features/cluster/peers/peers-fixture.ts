import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { CompleteAnswer, Headers } from '../../../../src/core/reply/reply.ts';
import { HttpPeers, type HttpPeersOptions } from '../../../../src/features/cluster/peers/http-peers.ts';
import type {
  PeerCall,
  PeerListener,
  PeerReply,
  PeerRequest,
} from '../../../../src/features/cluster/peers/peer-request.ts';
import { acceptsBoth } from '../../../support/fake-reply.ts';
import { createMemoryInstances } from '../../../support/memory-cluster/memory-instances.ts';
import { waitFor } from '../../../support/wait-for.ts';

export const secret = Buffer.alloc(32, 7);

/** What an instance was asked. */
export interface Served {
  readonly request: PeerRequest;
  readonly body: string;
  readonly reply: PeerReply;
}

/** Everything that an ingress hears of one request. */
export interface Heard {
  readonly call: PeerCall;
  readonly heard: string[];
  answer?: CompleteAnswer;
  headers?: Headers | undefined;
  text: string;
  /** What `received` returns. */
  reads: boolean;
  readonly over: Promise<string>;
}

export const post: PeerRequest = { kind: 'post', key: 'k', request: { accepts: acceptsBoth } };
export const listening = { ...post, kind: 'listen' } as PeerRequest;

/** Instances of one store, on sockets in one directory, or over TLS on loopback. */
export async function createPeers(kind: 'unix' | 'tls', leaseMs = 60_000) {
  const directory = await mkdtemp(join(tmpdir(), 'gp-'));
  const instances = createMemoryInstances({ leaseMs: 1_000_000, now: () => performance.now() });
  const open: HttpPeers[] = [];
  onTestFinished(async () => {
    await Promise.all(open.map((peers) => peers.close()));
    await rm(directory, { recursive: true });
  });

  const join_ = async (name: string, options: Partial<HttpPeersOptions> = {}) => {
    await instances.join(name);
    const served: Served[] = [];
    const events: string[] = [];
    let current = name;
    const peers = new HttpPeers({
      instances,
      secrets: { all: async () => [secret], reread: async () => [secret] },
      addresses: kind === 'unix' ? { directory } : { network: { host: '127.0.0.1', port: 0, advertised: '127.0.0.1' } },
      leaseMs,
      emit: (event) => {
        if (event.type === 'peer-unreachable') events.push(`unreachable ${event.instance}: ${event.detail}`);
        else if (event.type === 'peer-reachable') events.push(`reachable ${event.instance}`);
        else if (event.type === 'peer-refused') events.push(`refused ${event.reason}`);
        else if (event.type === 'store-failed') events.push(`fault ${(event.cause as Error).message}`);
      },
      ...options,
    });
    open.push(peers);
    peers.attach({
      name: () => current,
      serve: (request, body, reply) => void served.push({ request, body: body.toString(), reply }),
    });
    await peers.listen();
    const ask = (to: string, request: PeerRequest = post, body?: string): Heard => {
      const heard: string[] = [];
      let settle: (how: string) => void = () => undefined;
      const over = new Promise<string>((resolve) => {
        settle = resolve;
      });
      const note = (what: string, isLast = true): void => {
        heard.push(what);
        if (isLast) settle(what);
      };
      const state: Heard = { call: undefined as never, heard, text: '', reads: true, over };
      const listener: PeerListener = {
        answered: (answer) => {
          state.answer = answer;
          note(`answered ${answer.kind}`);
        },
        denied: (why) => note(`denied ${why}`),
        opened: (headers) => {
          state.headers = headers;
          note('opened', false);
        },
        received: (text) => {
          state.text += text.toString();
          return state.reads;
        },
        ended: (isMoved) => note(isMoved ? 'moved' : 'ended'),
        failed: (why) => note(`failed ${why}`),
      };
      return Object.assign(state, {
        call: peers.ask(to, request, body === undefined ? undefined : Buffer.from(body), listener),
      });
    };
    const asked = (count: number): Promise<unknown> =>
      waitFor(() => served.length >= count, { what: `${count} requests`, intervalMs: 2 });
    /** Requests that are asked at once come by connections of their own, so in any order. */
    const servedAs = (kind: PeerRequest['kind']): PeerReply => {
      const found = served.find(({ request }) => request.kind === kind);
      if (found === undefined) throw new Error(`no request of the kind ${kind} was served`);
      return found.reply;
    };
    const rename = async (to: string): Promise<void> => {
      await instances.leave(current);
      await instances.join(to);
      current = to;
      peers.publish();
    };
    return { peers, served, servedAs, events, ask, asked, rename };
  };
  return { directory, instances, join: join_ };
}
