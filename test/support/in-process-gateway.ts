import { PassThrough } from 'node:stream';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { startGateway } from '../../src/app/gateway.ts';
import { readConfiguration } from '../../src/config/config.ts';
import type { OpenBackend } from '../../src/core/backend/backend.ts';
import { createLog } from '../../src/core/ops/log/log.ts';
import { readLogLevels } from '../../src/core/ops/log/log-parts.ts';
import { features } from '../../src/features.ts';
// @ts-expect-error: a fixture in JavaScript
import { createLineTransport } from '../fixtures/everything/line-transport.mjs';
// @ts-expect-error: a fixture in JavaScript
import { answerRawly } from '../fixtures/everything/raw-tools.mjs';
// @ts-expect-error: a fixture in JavaScript
import { createEverythingServer } from '../fixtures/everything/server.mjs';
// @ts-expect-error: a fixture in JavaScript
import { createTaskAnswers } from '../fixtures/modern/extension-tasks.mjs';
// @ts-expect-error: a fixture in JavaScript
import { createModernServer } from '../fixtures/modern/server.mjs';
import { createFakeServer, type FakeBackend } from './fake-backend.ts';

/** Which eras a server of this process speaks; the legacy one has tasks of 2025-11-25, and `tasks` is a modern one with the extension. */
export type ServedEras = 'legacy' | 'modern' | 'both' | 'tasks';

/** The input of a server for each of its backends. */
const inputs = new WeakMap<FakeBackend, PassThrough>();

/** Opens backends of a server that runs in this process: our fixtures, without a program around them. */
function openerOf(eras: ServedEras): OpenBackend {
  return createFakeServer((_message, backend, text) => {
    const stdin = inputs.get(backend) ?? serve(eras, backend);
    stdin.write(`${text}\n`);
  }).open;
}

function serve(eras: ServedEras, backend: FakeBackend): PassThrough {
  const stdin = new PassThrough();
  inputs.set(backend, stdin);
  const stdout = { write: (text: string) => setImmediate(() => backend.says(...text.split('\n').slice(0, -1))) };
  const hasTasks = eras === 'tasks';
  const answerTasks: (read: object) => boolean = hasTasks ? createTaskAnswers() : () => false;
  const intercept = (read: object): boolean => answerTasks(read) || answerRawly(read);
  const transport = createLineTransport({ stdin, stdout, intercept });
  const legacy = eras === 'both' ? 'serve' : 'reject';
  if (eras === 'legacy') createEverythingServer().connect(transport);
  else serveStdio((context) => createModernServer({ ...context, hasTasks }), { legacy, transport });
  return stdin;
}

/** A gateway in this process, with one server in this process. */
export interface InProcessGateway {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Starts a gateway in front of a server of these eras. Its clients connect over loopback; nothing else leaves the process.
 * @param defaults of all servers
 */
export async function startInProcess(eras: ServedEras, defaults: object = {}): Promise<InProcessGateway> {
  const open = openerOf(eras);
  const file = JSON.stringify({ defaults, servers: { s: { url: 'tcp://127.0.0.1:9', share: 'all' } } });
  const argv = ['--config', 'gateway.json', '--host', '127.0.0.1', '--port', '0', '--admin-port', '0'];
  const read = () => readConfiguration({ argv, env: {}, readFile: () => file });
  const configuration = read();
  if (!configuration.ok || !('config' in configuration)) throw new Error(JSON.stringify(configuration));
  const levels = readLogLevels('error');
  if (!levels.ok) throw new Error('no such level');
  const gateway = await startGateway({
    config: configuration.config,
    features: {
      ...features,
      remote: {
        openers({ onStarted }) {
          const openNow: OpenBackend = (events, options) => {
            queueMicrotask(onStarted);
            return open(events, options);
          };
          return { open: openNow, openModern: openNow, isOverHttp: false };
        },
        createSend: () => {
          throw new Error('the server needs no requests of the gateway itself');
        },
      },
    },
    source: { files: [], states: [], read },
    environment: {},
    log: createLog({ levels: levels.levels, isPretty: false, hasColors: false }),
    onUseless: (message) => {
      throw new Error(message);
    },
    onDrain: () => undefined,
  });
  const url = gateway.urls[0]?.url;
  if (url === undefined) throw new Error('the gateway has no endpoint');
  return { url, close: () => gateway.close() };
}
