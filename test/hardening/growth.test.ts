import { once } from 'node:events';
import { queryObjects } from 'node:v8';
import { afterAll, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { fixtureKinds, modernOnly } from '../integration/server-kinds.ts';
import { initialize } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { connectOld } from '../support/old-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { webSocketUrlOf } from '../support/websocket-client.ts';

/** Begins to use the gateway, and resolves with the end of that. */
type Use = (gateway: LocalGateway) => Promise<() => Promise<unknown>>;

/** With fewer, the gateway would take the client for one that opens a session for each call, and keep its process. */
const calls = 3;

const uses: Readonly<Record<string, Use>> = {
  async 'Streamable HTTP'({ url }) {
    const session = await initialize(url);
    const stream = await session.getStream();
    for (let n = 0; n < calls; n += 1) await session.callTool('echo', { text: 'a' });
    return async () => {
      await session.delete();
      await stream.answer();
    };
  },
  async 'HTTP+SSE'({ baseUrl }) {
    const client = await connectOld(baseUrl);
    for (let n = 0; n < calls; n += 1) await client.request('tools/call', { name: 'echo', arguments: { text: 'a' } });
    return async () => client.drop();
  },
  async WebSocket({ url }) {
    const peer = new WebSocket(webSocketUrlOf(url), ['mcp']);
    await once(peer, 'open');
    const answered = once(peer, 'message');
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'a', version: '1' } };
    peer.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }));
    await answered;
    return async () => {
      peer.close();
      await once(peer, 'close');
    };
  },
  async '2026-07-28'({ url }) {
    expect((await callModern(url, 'echo', { text: 'a' })).status).toBe(200);
    return async () => undefined;
  },
};

const rounds = 10;

/** What an ended session may leave for a time: that it has ended, so that its client learns it. */
const mostOfOne = 10;

/** A gateway that always has clients: two uses are under way when the next one begins, and when it is looked at. */
class BusyGateway {
  readonly #gateway: LocalGateway;
  readonly #ends: (() => Promise<unknown>)[] = [];

  constructor(gateway: LocalGateway) {
    this.#gateway = gateway;
  }

  async useAll(times: number): Promise<void> {
    for (let n = 0; n < times; n += 1)
      for (const use of Object.values(uses)) {
        this.#ends.push(await use(this.#gateway));
        if (this.#ends.length > 2) await this.#ends.shift()?.();
      }
  }

  async stop(): Promise<void> {
    for (const end of this.#ends.splice(0)) await end();
    await this.#gateway.stop();
  }
}

const countObjects = (): number => queryObjects(Object, { format: 'count' });

// What a gateway frees at its end must not hide what another one keeps.
const stops: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});

const kinds = [...fixtureKinds.filter(({ transport }) => transport === 'stdio' || transport === 'http'), modernOnly];

it.each(kinds)(
  '[P8] clients that overlap leave nothing behind, with $name',
  { timeout: 300_000 },
  async ({ ready }) => {
    const { args, command, stop } = await ready();
    // With the default of `share`, and not with that of tests.
    const env = { GANGWAY_SHARE: undefined };
    const gateway = await startLocalGateway({ args: [...args], command, env, isStoppedWithTest: false });
    const busy = new BusyGateway(gateway);
    stops.push(() => busy.stop(), stop);
    await busy.useAll(2);
    const before = countObjects();
    await busy.useAll(rounds);
    const most = before + rounds * Object.keys(uses).length * mostOfOne;
    await waitFor(() => countObjects() <= most, { intervalMs: 500, what: 'the objects of ended sessions to be freed' });
  },
);
