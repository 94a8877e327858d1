import { onTestFinished } from 'vitest';
import { DirectLinks } from '../../../src/cluster/link/direct-links.ts';
import { type NetProxy, startNetProxy } from '../../support/net-proxy.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createFakeInstances } from '../two-instances/fake-instances.ts';

/** The addresses that the instances of a test have published. */
export type Addresses = Map<string, string>;

export const secretOf = (text: string): Buffer => Buffer.from(text.padEnd(32, '.'));

/** Options of one end. */
export interface LinkEndOptions {
  readonly name: string;
  readonly addresses: Addresses;
  readonly secrets?: readonly string[];
  readonly silenceMs?: number | undefined;
  readonly port?: number;
  /** For links over Unix sockets, which have no port. */
  readonly directory?: string | undefined;
  /** False refuses messages. */
  takes?(first: number): boolean;
}

/** One end of direct links, which listens on loopback. */
export async function startLinkEnd({
  name,
  addresses,
  takes,
  silenceMs = 400,
  port = 0,
  directory,
  ...options
}: LinkEndOptions) {
  const end = {
    name,
    secrets: (options.secrets ?? ['shared']).map(secretOf),
    faults: [] as unknown[],
    unreachable: [] as string[],
  };
  const received: string[] = [];
  const links = new DirectLinks({
    instances: {
      ...createFakeInstances(),
      publishAddress: async (instance, address) => void addresses.set(instance, address),
      addressOf: async (instance) => addresses.get(instance),
    },
    secrets: { all: async () => end.secrets, reread: async () => end.secrets },
    addresses: directory ? { directory } : { network: { host: '127.0.0.1', port, advertised: '127.0.0.1' } },
    silenceMs,
    name: () => end.name,
    onMessages(from, first, contents) {
      if (takes?.(first) === false) return false;
      for (const [index, content] of contents.entries()) received.push(`${from} ${first + index} ${textOf(content)}`);
      return true;
    },
    onUnreachable: (peer, address) => void end.unreachable.push(`${peer} ${address}`),
    onFault: (cause) => void end.faults.push(cause),
  });
  onTestFinished(() => links.close());
  await links.listen();
  await waitFor(() => addresses.has(name), { what: 'the address' });
  return Object.assign(end, { links, received, port: Number(links.address?.split(':').at(-1)) });
}

export type LinkEnd = Awaited<ReturnType<typeof startLinkEnd>>;

const textOf = (content: Buffer): string => (content.length > 100 ? `${content.length} bytes` : content.toString());

/** Puts a proxy before an end: others reach it only through the proxy. */
export async function putProxyBefore(end: LinkEnd, addresses: Addresses): Promise<NetProxy> {
  const proxy = await startNetProxy(end.port);
  onTestFinished(() => proxy.close());
  addresses.set(end.name, `tcp:127.0.0.1:${proxy.port}`);
  return proxy;
}

/** A sender that notes what it learns of its messages. */
export function connectSender(from: LinkEnd, to: string) {
  const notes: string[] = [];
  const sender = {
    onAcknowledged: (number: number) => void notes.push(`acknowledged ${number}`),
    onEnded: (refusedFrom: number | undefined) =>
      void notes.push(refusedFrom === undefined ? 'lost' : `refused ${refusedFrom}`),
  };
  return {
    notes,
    async open(next = 1) {
      const connection = await waitFor(() => from.links.to(to), { what: `a connection to ${to}` });
      connection.use(sender, next);
      return connection;
    },
  };
}
