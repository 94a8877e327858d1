import { describe, expect, it } from 'vitest';
import { root } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';

/** A server whose calls take a second without a word. */
const command = [process.execPath, `${root}test/fixtures/slow-tools.mjs`];
const args = ['--calls.progress', '200ms'];
const call = { name: 'slow_compute', arguments: { seconds: 1 } };

interface Progress {
  readonly method?: string;
  readonly params: { readonly progressToken: unknown; readonly progress: number };
}

/** Asserts that the client heard of progress several times before the result, always of more. */
function expectProgress(messages: readonly Progress[], token: unknown): void {
  const told = messages.filter(({ method }) => method === 'notifications/progress');
  expect(told.length).toBeGreaterThanOrEqual(3);
  const values = told.map(({ params }) => params.progress);
  expect(new Set(values).size).toBe(values.length);
  expect(values.toSorted((a, b) => a - b)).toEqual(values);
  expect(told.every(({ params }) => params.progressToken === token)).toBe(true);
  expect(messages.at(-1)).toMatchObject({ result: { content: [{ text: 'computed' }] } });
}

describe('with calls.progress, a client that wants progress hears of a silent call', () => {
  it('in a session, with the events of its stream', async () => {
    await using gateway = await startLocalGateway({ command, args });
    const session = await initialize(gateway.url);
    const params = { ...call, _meta: { progressToken: 'p' } };
    const { messages, events } = await session.request('tools/call', params);
    expectProgress(messages, 'p');
    expect(events.every(({ id }) => id !== undefined)).toBe(true);
  });

  it('of 2026-07-28', async () => {
    await using gateway = await startLocalGateway({ command, args });
    const { messages } = await callModern(gateway.url, call.name, call.arguments, { meta: { progressToken: 7 } });
    expectProgress(messages, 7);
  });

  it('and the values go on above those of the server', async () => {
    await using gateway = await startLocalGateway({ command, args });
    const { messages } = await callModern(gateway.url, 'steps', { count: 3 }, { meta: { progressToken: 7 } });
    const values = messages.flatMap(({ params }) => (params === undefined ? [] : [params.progress]));
    expect(values.filter((value) => value > 0 && Number.isInteger(value))).toEqual([1, 2, 3]);
    expect(values.length).toBeGreaterThan(3);
    expect(values.toSorted((a, b) => a - b)).toEqual(values);
  });

  it('and nobody hears of it without a token, or without the option', async () => {
    await using gateway = await startLocalGateway({ command, args });
    expect((await callModern(gateway.url, call.name, call.arguments)).messages).toHaveLength(1);
    await using usual = await startLocalGateway({ command });
    const { messages } = await callModern(usual.url, call.name, call.arguments, { meta: { progressToken: 7 } });
    expect(messages).toHaveLength(1);
  });
});
