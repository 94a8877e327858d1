import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Compose, composeUp, others } from './compose.ts';
import { answeredWithinMs, connectTo, countTo } from './compose-client.ts';
import { docker } from './engine.ts';

/** The example two-hosts-with-redis-and-nginx in a real engine: two gateways, a Redis, and nginx, which sends each request to any gateway. */

let compose: Compose;

beforeAll(async () => {
  compose = await composeUp();
}, 900_000);

afterAll(async () => {
  await compose?.down();
}, 120_000);

const connect = () => connectTo(compose, compose.url);

describe('two gateways behind nginx', () => {
  it('[P4] serve one session, each request by any of them', async () => {
    const client = await connect();
    const owner = await client.where();
    for (let count = 0; count < 6; count++) expect(await client.where()).toBe(owner);
    expect(new Set(client.served.items.map(({ gateway }) => gateway))).toEqual(new Set(['gateway-1', 'gateway-2']));
    const { steps, text } = client.count({ to: 20, everyMs: 20 });
    expect(await text).toBe(`Counted to 20 on ${owner}.`);
    expect(steps.items).toEqual(countTo(20));
  });

  it('[P3] answer a call in its stream when its owner is killed, and go on with the session', async () => {
    const client = await connect();
    const owner = await client.where();
    const { steps, text } = await client.countBy(others[owner], { to: 300, everyMs: 100 });
    await steps.next();
    const killedAt = performance.now();
    await compose.killForNow(owner);
    await expect(text).rejects.toThrow('took effect is unknown');
    expect(performance.now() - killedAt).toBeLessThan(answeredWithinMs);
    expect(steps.items).toEqual(countTo(steps.items.length));
    // It was restored where the client's stream was.
    expect(await client.where()).toBe(others[owner]);
  });

  it('[P3] [P4] answer it on another connection when the client was connected to the owner', async () => {
    const client = await connect();
    const owner = await client.where();
    const { steps, text } = await client.countBy(owner, { to: 300, everyMs: 100 });
    await steps.next();
    const killedAt = performance.now();
    await compose.killForNow(owner);
    await expect(text).rejects.toThrow('took effect is unknown');
    // One second more: for so long nginx may try to connect to the one that is gone.
    expect(performance.now() - killedAt).toBeLessThan(answeredWithinMs + 1_000);
    expect(steps.items).toEqual(countTo(steps.items.length));
    expect(client.resumes()).toBeGreaterThan(0);
    expect(await client.where()).toBe(others[owner]);
  });

  it('[P4] continue a stream on the owner when the gateway that passed it on is killed', async () => {
    const client = await connect();
    const owner = await client.where();
    const ingress = others[owner];
    const { steps, text } = await client.countBy(ingress, { to: 80, everyMs: 100 });
    await steps.next();
    await compose.killForNow(ingress);
    expect(await text).toBe(`Counted to 80 on ${owner}.`);
    expect(steps.items).toEqual(countTo(80));
    expect(client.resumes()).toBeGreaterThan(0);
  });

  it('[P9] lose nothing when one after the other is stopped and started anew', async () => {
    const client = await connect();
    for (const stopped of ['gateway-1', 'gateway-2'] as const) {
      const owner = await client.where();
      const calls = [
        await client.countBy('gateway-1', { to: 50, everyMs: 100 }),
        await client.countBy('gateway-2', { to: 50, everyMs: 100 }),
      ];
      await Promise.all(calls.map(({ steps }) => steps.next()));
      await docker('stop', compose.containerOf(stopped));
      for (const { steps, text } of calls) {
        expect(await text).toBe(`Counted to 50 on ${owner}.`);
        expect(steps.items).toEqual(countTo(50));
      }
      expect(await docker('inspect', '--format', '{{.State.ExitCode}}', compose.containerOf(stopped))).toBe('0');
      expect(await client.where()).toBe(others[stopped]);
      await compose.startAgain(stopped);
    }
  });

  it('[P7] keep sessions and streams when Redis is started anew, empty', async () => {
    const client = await connect();
    const owner = await client.where();
    const { steps, text } = await client.countBy(others[owner], { to: 100, everyMs: 100 });
    await steps.next();
    await docker('restart', '--time', '1', compose.containerOf('redis'));
    expect(await text).toBe(`Counted to 100 on ${owner}.`);
    expect(steps.items).toEqual(countTo(100));
    expect(await client.where()).toBe(owner);
  });

  it('[P6] answer a call in its stream when its owner is frozen, which then gives the session up', async () => {
    const client = await connect();
    const owner = await client.where();
    const { steps, text } = await client.countBy(others[owner], { to: 300, everyMs: 100 });
    await steps.next();
    const frozenAt = performance.now();
    await docker('pause', compose.containerOf(owner));
    await expect(text).rejects.toThrow('took effect is unknown');
    expect(performance.now() - frozenAt).toBeLessThan(answeredWithinMs);
    await docker('unpause', compose.containerOf(owner));
    for (let count = 0; count < 6; count++) expect(await client.where()).toBe(others[owner]);
  });
});
