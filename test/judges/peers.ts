import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { everythingFixture, root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';

export type PeerName = 'supergateway' | 'mcp-proxy';

/** How the benchmarks start a peer, and where they install it (`bench/targets.mjs`, `bench/lib/peers.mjs`). */
interface BenchTarget {
  argv(ports: { readonly port: string }, places: { readonly command: readonly string[] }): string[];
}

/** Starts a gateway of somebody else in front of our STDIO fixture. The first start installs it. */
export async function startPeer(name: PeerName): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const { installPeers }: { installPeers(): void } = await import(`${root}bench/lib/peers.mjs`);
  const { targets }: { targets: Record<PeerName, BenchTarget> } = await import(`${root}bench/targets.mjs`);
  installPeers();
  const port = await findFreePort();
  const words = targets[name].argv({ port: `${port}` }, { command: everythingFixture });
  const child = spawn(process.execPath, words, { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const isListening = (): Promise<boolean> =>
    fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
  await waitFor(isListening, { what: `${name} to listen` });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
