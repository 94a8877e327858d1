import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Compose, composeUp, others } from './compose.ts';
import { answeredWithinMs, connectTo, countTo } from './compose-client.ts';
import { docker } from './engine.ts';

/** An old HTTP+SSE server behind the two gateways and nginx of the example, beside the STDIO server. */

let compose: Compose;

beforeAll(async () => {
  compose = await composeUp('old-server');
}, 900_000);

afterAll(async () => {
  await compose?.down();
}, 120_000);

const connect = () => connectTo(compose, compose.urlOf('old'));

describe('an old HTTP+SSE server behind two gateways and nginx', () => {
  it('[P4] is served by any of them, beside the STDIO server', async () => {
    const client = await connect();
    for (let count = 0; count < 6; count++) expect(await client.where()).toBe('old-server');
    expect(new Set(client.served.items.map(({ gateway }) => gateway))).toEqual(new Set(['gateway-1', 'gateway-2']));
    const { steps, text } = client.count({ to: 20, everyMs: 20 });
    expect(await text).toBe('Counted to 20 on old-server.');
    expect(steps.items).toEqual(countTo(20));
    const other = await connectTo(compose, compose.urlOf('demo'));
    expect(await other.where()).toBe(other.opener());
  });

  it('[P4] goes on with a call whose gateway is killed: its stream is resumed with the other', async () => {
    const client = await connect();
    const ingress = others[client.opener()];
    const { steps, text } = await client.countBy(ingress, { to: 80, everyMs: 100 });
    await steps.next();
    await compose.killForNow(ingress);
    expect(await text).toBe('Counted to 80 on old-server.');
    expect(steps.items).toEqual(countTo(80));
    expect(client.resumes()).toBeGreaterThan(0);
  });

  it('[P3] answers a call whose owner is killed, and goes on with the session on a new connection to the server', async () => {
    const client = await connect();
    const owner = client.opener();
    const { steps, text } = await client.countBy(others[owner], { to: 300, everyMs: 100 });
    await steps.next();
    const killedAt = performance.now();
    await compose.killForNow(owner);
    await expect(text).rejects.toThrow('took effect is unknown');
    expect(performance.now() - killedAt).toBeLessThan(answeredWithinMs);
    expect(steps.items).toEqual(countTo(steps.items.length));
    expect(await client.where()).toBe('old-server');
  });

  it('[F28] may be started anew: its sessions go on', async () => {
    const client = await connect();
    expect(await client.where()).toBe('old-server');
    await docker('restart', '--time', '1', compose.containerOf('old-server'));
    expect(await client.where()).toBe('old-server');
  });
});
