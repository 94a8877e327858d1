import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rssMiB } from '../fault/memory.ts';
import { initialize, type Message, post, type Session } from '../support/http-client.ts';
import { isAtLeast } from '../support/log-levels.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  accept,
  beginStream,
  endpointEvent,
  expectNoSecret,
  greet,
  startBehind,
  startHostile,
} from './hostile-server.ts';

const mebibyte = 1024 * 1024;
const initializeBody = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
};

test('[S10] [A07] [F28] an endpoint anywhere else: initialize is answered with 502, and nobody is called', async () => {
  const called: string[] = [];
  const { origin } = await startHostile(({ url }, response) => {
    called.push(`${url}`);
    response.end();
  });
  const { host, port } = new URL(origin);
  const endpoints = [
    '//evil.invalid/m',
    `//${host}/m`,
    `http://localhost:${port}/m`,
    `https://${host}/m`,
    'http://169.254.169.254/latest/meta-data/',
    `\\\\${host}\\m`,
    `/\\${host}/m`,
    `/\t/${host}/m`,
    `http://127.0.0.1:1@${host}/m`,
    `http://user:password@${host}/m`,
    `ws://${host}/m`,
    'file:///etc/passwd',
    JSON.stringify({ uri: `${origin}/m` }),
    '',
  ];
  let next = '';
  const posted: (string | undefined)[] = [];
  const { gateway, url } = await startBehind(
    'sse',
    (_, response) => void beginStream(response).write(`event: endpoint\ndata: ${next}\n\n`),
    ({ url: path }, response) => {
      posted.push(path);
      response.end();
    },
  );
  const texts: string[] = [];
  for (next of endpoints) {
    const answer = await post(url, initializeBody);
    expect([next, answer.status, answer.json.error.data.reason]).toEqual([next, 502, 'server_start_failed']);
    texts.push(answer.text);
  }
  expect([...called, ...posted]).toEqual([]);
  expect([...texts, gateway.stderr()].join()).not.toMatch(/evil|169\.254|passwd|user:/);
  expectNoSecret(gateway, ...texts);
});

/** What a server does when it is called: its stream, the answer to the POST, and the answer that it should give. */
interface Called {
  readonly stream: ServerResponse;
  readonly response: ServerResponse;
  readonly answer: string;
}

const eventOf = (text: string): string => `data: ${text}\n\n`;

async function drip(stream: ServerResponse, text: string): Promise<void> {
  for (const byte of Buffer.from(text)) await new Promise((resolve) => stream.write(Buffer.of(byte), resolve));
}

/** By the name of a tool: what the server does when it is called, and the reason of the error that comes of it, if any. */
const deeds: Readonly<Record<string, readonly [(called: Called) => unknown, reason?: string]>> = {
  'another endpoint elsewhere': [
    ({ stream, response }) => {
      response.writeHead(202).end();
      stream.write('event: endpoint\ndata: //evil.invalid/m\n\n');
    },
    'server_exited',
  ],
  'another endpoint of its origin': [
    ({ stream, response }) => {
      response.writeHead(202).end();
      stream.write('event: endpoint\ndata: /messages?sessionId=upstream-secret-2\n\n');
    },
    'server_exited',
  ],
  'the same endpoint again': [
    ({ stream, response, answer }) => {
      response.writeHead(202).end();
      stream.write(`${endpointEvent}${eventOf(answer)}`);
    },
  ],
  'an event of more than 64 MiB': [
    async ({ stream, response }) => {
      response.writeHead(202).end();
      stream.write('data: ');
      const chunk = Buffer.alloc(mebibyte, 'x');
      for (let i = 0; i < 70 && !stream.destroyed; i++) await new Promise((resolve) => stream.write(chunk, resolve));
    },
    'line_too_long',
  ],
  'a drop': [({ stream }) => void stream.destroy(), 'server_exited'],
  'a drop in the middle of the answer': [
    ({ stream, response, answer }) => {
      response.writeHead(202).end();
      stream.write(`data: ${answer.slice(0, 20)}`, () => stream.destroy());
    },
    'server_exited',
  ],
  'an end': [
    ({ stream, response }) => {
      response.writeHead(202).end();
      stream.end();
    },
    'server_exited',
  ],
  'silence after the POST': [({ response }) => void response.writeHead(202).end(), 'request_timeout'],
  'silence instead of an answer to the POST': [() => undefined, 'request_timeout'],
  'an answer to the POST when the call is done, after more than a message may take': [
    async ({ stream, response, answer }) => {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      stream.write(eventOf(answer));
      response.writeHead(200).end();
    },
  ],
  'an answer on the stream alone': [({ stream, answer }) => void stream.write(eventOf(answer))],
  'an answer to the POST that never ends': [
    ({ response }) => void response.writeHead(202).write('x'),
    'request_timeout',
  ],
  '500 for the POST': [({ response }) => void response.writeHead(500).end('upstream-secret'), 'server_refused'],
  'a redirect of the POST': [
    ({ response }) => void response.writeHead(307, { location: 'http://127.0.0.1:1/?upstream-secret' }).end(),
    'server_refused',
  ],
  'a POST that is cut': [({ response }) => void response.destroy(), 'server_unreachable'],
  'bytes one by one, CR and LF mixed': [
    async ({ stream, response, answer }) => {
      response.writeHead(202).end();
      const [head, tail] = [answer.slice(0, answer.indexOf(',') + 1), answer.slice(answer.indexOf(',') + 1)];
      await drip(stream, `: \uFEFF\0\r\rid: \0\r\nevent: message\rdata: ${head}\r\ndata:${tail}\n\r\n`);
    },
  ],
  'nonsense, and then the answer': [
    ({ stream, response, answer }) => {
      response.writeHead(202).end();
      for (const text of [
        '',
        'x',
        '{',
        '[]',
        '{}',
        '1',
        'null',
        '\0',
        '\uFEFF{}',
        '{"jsonrpc":"2.0","id":null,"result":1}',
      ])
        stream.write(eventOf(text));
      stream.write(eventOf('{"jsonrpc":"2.0","id":"nobody asked","result":{}}'));
      stream.write(`event: other\n${eventOf('{"jsonrpc":"2.0","method":"x"}')}nonsense\n\n${eventOf(answer)}`);
    },
  ],
  'HTML as the answer to the POST': [
    ({ stream, response, answer }) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>upstream-secret</p>');
      stream.write(eventOf(answer));
    },
  ],
  'the answer twice': [
    ({ stream, response, answer }) => {
      response.writeHead(202).end();
      stream.write(eventOf(answer) + eventOf(answer));
    },
  ],
};

/**
 * A server that is as it should be until a tool is called: then it does what the tool is named for.
 * @param idle after which silence the gateway gives up a request
 */
async function startMoody(idle: string) {
  const open = new Set<object>();
  let stream: ServerResponse | undefined;
  const behind = await startBehind(
    'sse',
    (request, response) => {
      stream = response;
      greet(request, response);
    },
    async (request, response) => {
      const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      const live = stream as ServerResponse;
      const capabilities = { tools: {} };
      const serverInfo = { name: 'x', version: '1' };
      const result = method === 'initialize' ? { protocolVersion: '2025-11-25', capabilities, serverInfo } : {};
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result });
      const deed = method === 'tools/call' ? deeds[params.name]?.[0] : undefined;
      if (deed !== undefined) return void deed({ stream: live, response, answer });
      accept(request, response);
      if (id !== undefined) live.write(eventOf(answer));
    },
    {},
    ['--timeouts.requestIdle', idle, '--timeouts.grace', '100ms'],
  );
  behind.server.on('connection', (socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  return { ...behind, open };
}

const responsesIn = (messages: readonly Message[]) => messages.filter(({ result, error }) => result ?? error);

describe('a session whose server misbehaves in a call', () => {
  let patient: Awaited<ReturnType<typeof startMoody>>;
  let impatient: typeof patient;
  beforeAll(async () => {
    [patient, impatient] = await Promise.all([startMoody('60s'), startMoody('1s')]);
  });
  afterAll(() => Promise.all([patient?.stop(), impatient?.stop()]));

  test.each(Object.entries(deeds))(
    '[F28] [S11] [P3] [P12] %s: answered once, as defined; the session goes on, and nothing is left',
    async (name, [, reason]) => {
      const { gateway, url, open } = reason === 'request_timeout' ? impatient : patient;
      const earlier = new Set(open); // what another test has left is its fault
      const session: Session = await initialize(url);
      const before = rssMiB(gateway.pid);
      const { messages, text } = await session.request('tools/call', { name });
      expect(responsesIn(messages)).toMatchObject([reason ? { error: { data: { reason } } } : { result: {} }]);
      const other = await session.request('tools/list');
      expect(responsesIn(other.messages)).toMatchObject([{ result: {} }]);
      expect(rssMiB(gateway.pid) - before).toBeLessThan(300);

      expect((await session.delete()).status).toBe(200);
      await waitFor(() => [...open].every((socket) => earlier.has(socket)), {
        what: 'every connection to the server to be closed',
      });
      expectNoSecret(gateway, text);
      expect(gateway.logs().filter((line) => isAtLeast(line, 'error'))).toEqual([]);
    },
  );
});
