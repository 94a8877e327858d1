import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { probeEraOverHttp } from '../../../../src/features/eras/modern/http-era-probe.ts';
import { openModernHttp } from '../../../../src/features/remote/modern-http/modern-http-backend.ts';
import { openStreamableHttp } from '../../../../src/features/remote/streamable-http/streamable-http-backend.ts';
import {
  beginStream,
  greet,
  json,
  type Manners,
  type Received,
  startHttpServer,
} from '../../remote/streamable-http/streamable-http-server.ts';

type Refuse = (response: ServerResponse, id: unknown) => void;

const at =
  (status: number, body = '', type = 'text/html'): Refuse =>
  (response) =>
    void response.writeHead(status, { 'content-type': type }).end(body);

const errorAt =
  (status: number, code: number, own?: unknown, data?: object): Refuse =>
  (response, id) => {
    const text = JSON.stringify({
      jsonrpc: '2.0',
      id: own === undefined ? id : own,
      error: { code, message: 'x', data },
    });
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  };

const legacyRevisions = ['2025-11-25', '2025-06-18'];

/** How servers of the legacy era answer `server/discover`. */
const refusals: [string, Refuse][] = [
  ...[400, 401, 403, 404, 405, 406, 409, 415, 422, 429, 500, 501, 502, 503, 504].map((status): [string, Refuse] => [
    String(status),
    at(status, '<html>'),
  ]),
  ['202', (r) => void r.writeHead(202).end()],
  ['204', (r) => void r.writeHead(204).end()],
  ['200 and no body', (r) => void r.writeHead(200).end()],
  ['200 and HTML', at(200, '<html>')],
  ['200 and {}', at(200, '{}', 'application/json')],
  ['200 and no JSON', at(200, '{', 'application/json')],
  ['401 and JSON', at(401, '{"error":"no session"}', 'application/json')],
  ['500 and an error', errorAt(500, -32603)],
  ['200 and an error', errorAt(200, -32602)],
  ['200 and an error with null', errorAt(200, -32600, null)],
  ['400 and an error of another id', errorAt(400, -32600, 'server-error')],
  ['an empty stream', (r) => void beginStream(r).end()],
  ['a stream with another message', (r) => void beginStream(r).end('data: {"jsonrpc":"2.0","method":"x"}\n\n')],
  ['the revisions that it supports', errorAt(400, -32022, undefined, { supported: legacyRevisions })],
  [
    'success, and older revisions',
    (r, id) => json(r, { jsonrpc: '2.0', id, result: { supportedVersions: legacyRevisions, capabilities: {} } }),
  ],
];

describe('the probe of a server at a URL', () => {
  const probe = async (manners: Manners, timeoutMs = 10_000) => {
    const server = await startHttpServer(manners);
    const limits = { url: server.url };
    const { outcome, close } = probeEraOverHttp({
      open: (events) => openModernHttp({ ...limits, version: '1' }, events),
      openLegacy: (events, options) => openStreamableHttp(limits, events, options),
      version: '1',
      timeoutMs,
    });
    const found = await outcome;
    await close();
    return { found, server };
  };
  const refuseBy =
    (refuse: Refuse) =>
    ({ message, response }: Received): void =>
      refuse(response, message.id);

  it.each(refusals)('[R6.05] finds the legacy era of one that answers with %s', async (_, refuse) => {
    let deleted = 0;
    const onDelete: Manners['onDelete'] = ({ response }) => {
      deleted += 1;
      response.writeHead(200).end();
    };
    const { found, server } = await probe({ onPost: refuseBy(refuse), onInitialize: greet, onDelete });
    expect(found).toMatchObject({ era: 'legacy' });
    const inits = server.posts.items.filter(({ message }) => message?.method === 'initialize').length;
    expect(deleted).toBe(inits); // it keeps no session there
  });

  it('[R6.05] finds the legacy era of one that never answers server/discover, long before its time limit', async () => {
    const startedAt = performance.now();
    const { found } = await probe({ onPost: () => undefined, onInitialize: greet }, 3_000);
    expect(found).toMatchObject({ era: 'legacy' });
    expect(performance.now() - startedAt).toBeLessThan(2_900);
  });

  it('[R6.05] finds the modern era of one that answers late', async () => {
    const result = { supportedVersions: ['2026-07-28'], capabilities: {} };
    let discovery: Received | undefined;
    const { found } = await probe(
      {
        onPost: (received) => {
          discovery = received;
        },
        onInitialize(received) {
          greet(received);
          if (discovery) json(discovery.response, { jsonrpc: '2.0', id: discovery.message.id, result });
        },
      },
      3_000,
    );
    expect(found).toMatchObject({ era: 'modern' });
  });

  it.each<[string, Refuse, Refuse, object]>([
    ['401', at(401), at(401), { isUnauthorized: true }],
    ['401 and then 404', at(401), at(404), { isUnauthorized: true, detail: expect.stringContaining('--era legacy') }],
    ['503', at(503), at(503), { detail: expect.stringMatching(/503.*initialize failed, too.*503.*--era legacy/s) }],
    ['202', at(202), at(202), { detail: expect.stringContaining('--era legacy') }],
  ])('finds no era of one that refuses both with %s, and says what to do', async (_, refuse, refuseFirst, end) => {
    const { found } = await probe({ onPost: refuseBy(refuse), onInitialize: refuseBy(refuseFirst) });
    expect(found).toMatchObject({ era: undefined, end: { reason: 'failed', ...end } });
  });
});
