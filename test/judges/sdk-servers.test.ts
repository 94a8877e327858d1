// Servers by the SDKs for Go, Java, Python and Rust, each asked the same directly and through the gateway, on STDIO and over HTTP.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { callModern } from '../support/modern-client.ts';
import { startNetProxy } from '../support/net-proxy.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startUsedRedis } from '../support/used-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  type Answers,
  askAsModern,
  askOverHttp,
  askOverSse,
  inBothEras,
  type Prepared,
  type Way,
  withServer,
} from './asking-servers.ts';
import { isAsked, keep } from './judge.ts';
import {
  buildSdkServers,
  missingSdkServers,
  type SdkServer,
  type ServerTransport,
  sdkServers,
} from './sdk-servers/servers.ts';
import { compare, judgeServers } from './server-arms.ts';

const startsWithinMs = 180_000;

if (missingSdkServers.length > 0)
  process.stderr.write(
    `${missingSdkServers.length} servers of SDKs are not judged, as their tools are missing: ${missingSdkServers}\n`,
  );

/** A server that listens on a port, until it is stopped. */
async function listen(
  server: SdkServer,
  port: number,
  transport: ServerTransport = 'http',
  env: NodeJS.ProcessEnv = process.env,
) {
  const [file = '', ...args] = server.listenOn(port, transport);
  const child = spawn(file, args, { env, stdio: 'ignore' });
  const exited = once(child, 'exit');
  const isUp = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  await waitFor(isUp, { what: `${server.name} to listen`, deadlineMs: startsWithinMs }).catch(async (error) => {
    await stop();
    throw error;
  });
  return { url: `http://127.0.0.1:${port}/${transport === 'sse' ? 'sse' : 'mcp'}`, stop };
}

/** A server over HTTP: a row of the table. */
interface HttpServer extends SdkServer {
  readonly transport: ServerTransport;
}

const transportNames = { http: 'Streamable HTTP', stateless: 'without sessions', sse: 'HTTP+SSE' } as const;

const httpServers = sdkServers.flatMap((server) =>
  server.transports.map(
    (transport): HttpServer => ({ ...server, name: `${server.name}, ${transportNames[transport]}`, transport }),
  ),
);

type Ask = (server: HttpServer, prepared: Prepared, url: string) => Promise<Answers>;

/** Asks a server over HTTP, which listens for as long as `ask` runs. */
const overHttp =
  (ask: Ask): Way<HttpServer> =>
  (server) =>
    withServer(server, async (prepared) => {
      const env = { ...process.env, ...prepared.env };
      const listening = await listen(server, await findFreePort(), server.transport, env);
      return ask(server, prepared, listening.url).finally(listening.stop);
    });

const askByItsTransport: Ask = (server, prepared, url) =>
  server.transport === 'sse' ? askOverSse(server, prepared, new URL(url).origin) : askOverHttp(server, prepared, url);

/** The same through a gateway in front of it. */
const throughGateway = (ask: Ask): Way<HttpServer> =>
  overHttp(async (server, prepared, url) => {
    await using gateway = await startGateway({ args: [url], env: { GANGWAY_SHARE: undefined } });
    return await ask(server, prepared, gateway.url);
  });

describe.skipIf(sdkServers.length === 0)('with the tools of a language', () => {
  beforeAll(() => buildSdkServers(sdkServers.filter(({ name }) => isAsked(name))), 5_000_000);

  judgeServers('Servers of SDKs, STDIO', sdkServers);

  compare('Servers of SDKs, HTTP', httpServers, overHttp(askByItsTransport), [
    { name: 'Streamable HTTP', way: throughGateway(askOverHttp) },
    { name: '2026-07-28', way: throughGateway(askAsModern), compared: inBothEras },
  ]);

  const text = (result: { content: readonly { text: string }[] }) => result.content[0]?.text;
  const echo = { text: 'still here' };
  const each = sdkServers.filter(({ name }) => isAsked(name)).map((server) => [server.name, server] as const);
  const note = (arm: string, scenario: string, cell: string): void =>
    keep({ judge: 'Servers of SDKs, HTTP, with faults', arm, scenario, passed: 1, failed: [], cell });

  /** A listening server behind a gateway. What a test starts ends with it. */
  async function serve(server: SdkServer, args: readonly string[] = []) {
    const port = await findFreePort();
    let running = await listen(server, port);
    onTestFinished(() => running.stop());
    const start = (port = 0) => startGateway({ port, args: [...args, running.url], env: { GANGWAY_SHARE: undefined } });
    const restart = async () => {
      await running.stop();
      running = await listen(server, port);
    };
    return { start, restart, gateway: await start() };
  }

  test.each(each)('%s: sessions survive a restart of the server over HTTP', async (_, server) => {
    const { gateway, restart } = await serve(server);
    const session = await initialize(gateway.url);
    expect(text(await session.callTool('echo', echo))).toContain('still here');
    expect((await callModern(gateway.url, 'echo', echo)).text).toContain('still here');
    await restart();
    expect(text(await session.callTool('echo', echo))).toContain('still here');
    expect((await callModern(gateway.url, 'echo', echo)).text).toContain('still here');
    note('Restart of the server', server.name, 'next calls work');
  });

  test.each(each)('%s: sessions survive a restart of the gateway, which keeps them in files', async (_, server) => {
    const folder = await mkdtemp(join(tmpdir(), 'gangway-sdk-servers-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const { gateway, start } = await serve(server, ['--replay.store', `file:${folder}`]);
    const session = await initialize(gateway.url);
    expect(text(await session.callTool('echo', echo))).toContain('still here');
    await gateway.stop();
    await start(gateway.port);
    expect(text(await session.callTool('echo', echo))).toContain('still here');
    expect((await callModern(gateway.url, 'echo', echo)).text).toContain('still here');
    note('Restart of the gateway, files', server.name, 'next calls work');
  });

  test.each(each)('%s: a call that is cut ends, and the next one works', async (_, server) => {
    const port = await findFreePort();
    const running = await listen(server, port);
    onTestFinished(running.stop);
    const proxy = await startNetProxy(port);
    onTestFinished(proxy.close);
    const gateway = await startGateway({ args: [proxy.urlOf(running.url)], env: { GANGWAY_SHARE: undefined } });
    const session = await initialize(gateway.url);
    const call = await session.send({
      ...{ jsonrpc: '2.0', id: 'cut', method: 'tools/call' },
      params: { name: 'wait', arguments: { count: 20, gapMs: 100 }, _meta: { progressToken: 'cut' } },
    });
    await call.nextMessage(({ method }) => method === 'notifications/progress');
    proxy.resetAll();
    // Some servers keep their events, so that the gateway can resume the stream. Others forget them, which it finds out late.
    const { result, error } = await call.nextMessage(({ id }) => id === 'cut', { deadlineMs: 60_000 });
    if (error !== undefined) expect(error.data.reason).toBe('server_unreachable');
    else expect(text(result)).toBe('waited');
    expect(text(await session.callTool('echo', echo))).toContain('still here');
    note('Call that is cut', server.name, error === undefined ? 'answer' : 'error, next call works');
  });

  test.each(each)('%s: two instances with Redis share a session', async (_, server) => {
    const redis = await startUsedRedis();
    const { gateway, start } = await serve(server, ['--redis', redis.url]);
    const other = await start();
    const session = await initialize(gateway.url);
    expect(text(await session.callTool('echo', echo))).toContain('still here');
    expect(text(await session.at(other.url).callTool('echo', echo))).toContain('still here');
    await gateway.stop('SIGKILL');
    expect(text(await session.at(other.url).callTool('echo', echo))).toContain('still here');
    note('Two instances, Redis, one killed', server.name, 'calls work');
  });
});
