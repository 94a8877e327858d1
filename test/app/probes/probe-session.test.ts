import { describe, expect, it } from 'vitest';
import { askServer, explainForcedEra } from '../../../src/app/probes/ask-server.ts';
import { explainSilence, ProbeSession } from '../../../src/app/probes/probe-session.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

/** What comes of a question that is answered with this text; `ID` in it is the id of the question. */
async function asked(answer: string): Promise<unknown> {
  const { open } = createFakeServer(({ id }, backend) => {
    queueMicrotask(() => backend.says(answer.replaceAll('ID', String(id))));
  });
  const trial = new ProbeSession(open, 50);
  return trial.request('tools/list', {}).then(
    (result) => ({ result }),
    (error: Error) => error.message,
  );
}

const noMessage = 'the error: The MCP server gave no message with this error.';

it.each([
  ['no object', '{"jsonrpc":"2.0","id":ID,"error":"no"}', 'the error: no'],
  ['without a message', '{"jsonrpc":"2.0","id":ID,"error":{}}', noMessage],
  ['whose message has no text', '{"jsonrpc":"2.0","id":ID,"error":{"message":{"toString":1}}}', noMessage],
  ['an array', '{"jsonrpc":"2.0","id":ID,"error":[]}', noMessage],
  ['as it should be', '{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"no"}}', 'the error: no'],
])('[S-02] an error that is %s has the trial say so', async (_, answer, said) => {
  expect(await asked(answer)).toContain(`The server answered tools/list with ${said}`);
});

it('[P3] [S-05] a response that is too complex has the trial say so, and not wait', async () => {
  const nested = '['.repeat(1_001) + ']'.repeat(1_001);
  const said = await asked(`{"result":{"tools":${nested}},"jsonrpc":"2.0","id":ID}`);
  expect(said).toContain('The server answered tools/list with the error: The answer is too complex');
});

it('[G-03] [P8] a response of more than 1 MiB is not built, and the trial says so', async () => {
  const values = '0,'.repeat(600_000);
  const said = await asked(`{"jsonrpc":"2.0","id":ID,"result":{"capabilities":[${values}0]}}`);
  expect(said).toBe('The server answered tools/list with more than 1048576 bytes.');
});

it('[P3] [S-02] a response whose error is null has the trial say so, and not wait', async () => {
  const said = await asked('{"jsonrpc":"2.0","id":ID,"error":null}');
  expect(said).toContain("the error: The MCP server's answer is not valid JSON-RPC: the error is null.");
});

/** A server that gives these answers, one after the other, and then the last one again. */
function answering(...outcomes: readonly object[]) {
  const asked: string[] = [];
  const server = createFakeServer(({ id, method }, backend) => {
    const outcome = outcomes[Math.min(asked.length, outcomes.length - 1)];
    asked.push(String(method));
    if (id !== undefined) queueMicrotask(() => backend.says({ jsonrpc: '2.0', id, ...outcome }));
  });
  return { open: server.open, asked };
}

const refused = (...supported: unknown[]) => ({ error: { code: -32022, message: 'Unsupported', data: { supported } } });
const fine = { result: { supportedVersions: ['2026-07-28'], capabilities: {} } };
const askModern = ({ open }: ReturnType<typeof answering>) =>
  askServer(open, 'modern', 10_000, (_, { revisions }) => revisions);

describe('[J-05] a server that refuses the version of the first question', () => {
  it('and names it is asked once more', async () => {
    const server = answering(refused('2026-07-28'), fine);
    expect(await askModern(server)).toEqual(['2026-07-28']);
    expect(server.asked).toEqual(['server/discover', 'server/discover']);
  });

  it('again and again is asked twice', async () => {
    const server = answering(refused('2026-07-28'));
    await expect(askModern(server)).rejects.toThrow('The server supports 2026-07-28.');
    expect(server.asked).toHaveLength(2);
  });

  it.each([
    ['an error', refused('2027-01-01', '2027-06-30')],
    ['a result', { result: { supportedVersions: ['2027-01-01', '2027-06-30'] } }],
  ])('and serves others alone is named with these, by %s', async (_, outcome) => {
    const server = answering(outcome);
    await expect(askModern(server)).rejects.toThrow(
      /no modern revision that this gateway supports \(2026-07-28\)\. The server supports 2027-01-01, 2027-06-30\./,
    );
    expect(server.asked).toHaveLength(1);
  });

  it('[P8] names what it likes, and little of that is said', async () => {
    const many = Array.from({ length: 100 }, (_, n) => `v${n}`);
    const server = answering({ error: { code: -32602, message: 'no', data: { supported: ['a b', 7, ...many] } } });
    await expect(askServer(server.open, 'legacy', 10_000, () => undefined)).rejects.toThrow(
      'The server answered initialize with the error: no. The server supports v0, v1, v2, v3, v4, v5, v6, v7, v8, v9.',
    );
  });

  it('is not blamed on --era for an answer to initialize that means nothing', async () => {
    const { open } = answering({ result: {} });
    const error = new Error('first');
    expect(await explainForcedEra(error, 'modern', { open, openModern: open }, 10_000)).toBe(error);
  });
});

it.each([
  [[], /Check that it is an MCP server\.$/, /^A STDIO server must answer/],
  [['waiting'], /Check that it is an MCP server\.$/, /^A STDIO server must answer/],
  [
    ['stdout: 1) start', 'waiting'],
    /wrote text to stdout that is not MCP\.$/,
    /^If the text is a menu.*A STDIO server/,
  ],
])('the silence of a server that wrote %j is explained', (output, message, help) => {
  const error = explainSilence('initialize', 9_000, output);
  expect(error.message).toMatch(message);
  expect(error).toMatchObject({ help: expect.stringMatching(help), output });
});
