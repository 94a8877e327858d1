import { readdirSync, readFileSync, statSync } from 'node:fs';
import { pino } from 'pino';
import { onTestFinished, TestRunner } from 'vitest';
import { expectNoLeak } from './canaries.ts';
import {
  argumentsOf,
  definedOnly,
  type Gateway,
  type GatewayOptions,
  inMemory,
  jsonLines,
  separateSessions,
  sharedBy,
} from './gateway.ts';
import type * as Parts from './gateway-parts.ts';
import { descendantsOf, findStarter } from './processes.ts';

/** A gateway, with or without a process of its own. */
export type AnyGateway = Pick<
  Gateway,
  'url' | 'baseUrl' | 'port' | 'logs' | 'stderr' | 'descendants' | keyof AsyncDisposable
> & {
  /** Closes the gateway gracefully. Rejects if a secret of the test run is in its log. Idempotent. */
  stop(): Promise<unknown>;
};

/**
 * A gateway without a process of its own. `stderr()` is its log. `descendants()` are the living processes that the
 * gateways in this process have started, and their descendants.
 */
export interface LocalGateway extends AnyGateway {
  /** The sentence at the start that says which clients share processes. */
  readonly sharing: string;
}

export type LocalOptions = Pick<
  GatewayOptions,
  'port' | 'adminPort' | 'args' | 'command' | 'env' | 'isStoppedWithTest'
>;

let parts: Promise<typeof Parts> | undefined;
const loadParts = (): Promise<typeof Parts> => {
  parts ??= import(/* @vite-ignore */ process.env['TEST_GATEWAY'] ?? './gateway-parts.ts');
  return parts;
};

/**
 * Starts a gateway in this process, with the arguments of the program. Its servers are processes, and its clients connect
 * over loopback, as with `startGateway`; but a start takes a tenth of the processor time. For tests that look at nothing
 * of the program itself: its process, its output, signals, and what it leaves behind.
 */
export async function startLocalGateway({
  port = 0,
  adminPort = 0,
  args = [],
  command = [],
  env = {},
  isStoppedWithTest = true,
}: LocalOptions = {}): Promise<LocalGateway> {
  const { features, logParts, readConfiguration, readLogLevels, renderIssue, startGateway } = await loadParts();
  const argv = argumentsOf({ port, adminPort, args, command });
  const environment = definedOnly({ ...process.env, ...inMemory, ...separateSessions([...args, ...command]), ...env });
  const read = () =>
    readConfiguration({
      argv,
      env: environment,
      readFile: (path: string) => readFileSync(path, 'utf8'),
      listFolder: (path: string) => (statSync(path).isDirectory() ? readdirSync(path) : undefined),
      findCommand: (name: string) => statSync(name, { throwIfNoEntry: false })?.isFile() ?? false,
    });
  const configuration = read();
  if (!configuration.ok) throw new Error(configuration.faults.map(renderIssue).join('\n'));
  if (!('config' in configuration) || configuration.command !== 'serve') throw new Error('only a gateway can be local');
  const { config, warnings, file, included } = configuration;
  const levels = readLogLevels(config.observe.logLevel);
  if (!levels.ok) throw new Error('the configuration has checked the log levels');
  let text = '';
  const root = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (level) => ({ level }) } },
    {
      write(line) {
        text += line;
      },
    },
  );
  const log = Object.fromEntries(
    logParts.map((part) => [part, root.child({ part }, { level: levels.levels[part] })]),
  ) as Parameters<typeof startGateway>[0]['log'];
  for (const warning of warnings) log.app.warn(warning);
  const gateway = await startGateway({
    config,
    features,
    file,
    source: { files: file === undefined ? [] : [file, ...included], states: [], read },
    environment,
    log,
    onUseless: (message) => log.app.error(message),
    onDrain: () => void gateway.close(),
  });
  const own = gateway.urls[0]?.url;
  if (own === undefined) throw new Error(`the gateway has no endpoint:\n${text}`);
  // With a public URL, the gateway names that, and listens here.
  const url = new URL(gateway.localUrl === undefined ? own : new URL(new URL(own).pathname, gateway.localUrl));
  url.hostname = '127.0.0.1';
  let stopping: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await gateway.close();
    const isDetailed = /--log-level (debug|trace)/.test(args.join(' '));
    expectNoLeak('the log of a gateway', text, { allowsContent: isDetailed });
  };
  const stop = (): Promise<void> => {
    stopping ??= close();
    return stopping;
  };
  if (isStoppedWithTest && TestRunner.getCurrentTest() !== undefined) onTestFinished(stop);
  return {
    url: url.href,
    baseUrl: url.origin,
    port: Number(url.port),
    logs: () => jsonLines(text),
    stderr: () => text,
    sharing: gateway.sharing,
    descendants: async () => {
      const starter = await findStarter(process.pid);
      return starter === undefined ? [] : descendantsOf(starter.pid);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * A gateway in this process that several tests use: the first one starts it, and it ends after the last test of this
 * suite. For tests that change nothing by which another one could be disturbed.
 */
export const sharedLocalGateway = sharedBy<LocalOptions, LocalGateway>(startLocalGateway);
