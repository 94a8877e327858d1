import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { root } from '../support/gateway.ts';
import { type Answer, initialize } from '../support/http-client.ts';
import { type LocalGateway, startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';

const file = `${root}test/fixtures/two-faced/server.mjs`;
const [clients, calls] = [20, 10];
let gateway: LocalGateway;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-same-ids-'));
  const config = join(folder, 'servers.json');
  const { execPath: command } = process;
  const modern = { command, args: [file, '--modern'], era: 'modern' };
  writeFileSync(config, JSON.stringify({ mcpServers: { legacy: { command, args: [file] }, modern } }));
  gateway = await startLocalGateway({ args: ['--config', config], isStoppedWithTest: false });
  rmSync(folder, { recursive: true });
});
afterAll(async () => void (await gateway?.stop()));

/** All that came for one call is of that call. */
function expectOwn({ messages }: Answer, id: unknown, text: string): void {
  const progress = [1, 2, 3].map((each) =>
    expect.objectContaining({
      params: { progressToken: id, progress: each, message: expect.stringContaining(`"${text}"`) },
    }),
  );
  const answer = { id, result: { content: [{ type: 'text', text: JSON.stringify({ text }) }] } };
  expect(messages).toEqual([
    ...progress,
    expect.objectContaining({ jsonrpc: '2.0', id, result: expect.objectContaining(answer.result) }),
  ]);
}

function expectAllOwn(answers: readonly (readonly Answer[])[]): void {
  for (const [client, of] of answers.entries()) {
    for (const [id, answer] of of.entries()) expectOwn(answer, id, `of ${client}, call ${id}`);
  }
}

describe('CVE-2026-25536: clients that all count ids and tokens from 0, at once', () => {
  const everyCall = <T>(call: (client: number, id: number, text: string) => Promise<T>): Promise<T[][]> =>
    Promise.all(
      Array.from({ length: clients }, (_, client) =>
        Promise.all(Array.from({ length: calls }, (_, id) => call(client, id, `of ${client}, call ${id}`))),
      ),
    );
  const params = (text: string, progressToken: unknown) => ({
    name: 'talk',
    arguments: { text },
    _meta: { progressToken },
  });

  it('[A03] [P2] [P11] in sessions: each gets the progress and the answers of its own calls', async () => {
    const sessions = await Promise.all(
      Array.from({ length: clients }, () => initialize(`${gateway.baseUrl}/legacy/mcp`)),
    );
    const answers = await everyCall((client, id, text) =>
      (sessions[client] as (typeof sessions)[0]).request('tools/call', params(text, id), { id }),
    );
    expectAllOwn(answers);
    for (const session of sessions) await session.delete();
  });

  it('[A03] [P2] [P11] on one process that all share: each gets the progress and the answers of its own calls', async () => {
    const answers = await everyCall((_, id, text) =>
      callModern(`${gateway.baseUrl}/modern/mcp`, 'talk', { text }, { id, meta: { progressToken: id } }),
    );
    expectAllOwn(answers);
  });
});
