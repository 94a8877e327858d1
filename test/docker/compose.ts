import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { open } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';
import { copyCheckout, docker, lab, prepareImages } from './engine.ts';

const run = promisify(execFile);

/** The gateways of the example two-hosts-with-redis-and-nginx. */
export type GatewayName = 'gateway-1' | 'gateway-2';

/** The other one of the two. */
export const others = { 'gateway-1': 'gateway-2', 'gateway-2': 'gateway-1' } as const;

/** The services of the example, running. */
export interface Compose {
  /** The endpoint of an only server, by way of the load balancer. */
  readonly url: string;
  /** The endpoint of one of several servers. */
  urlOf(server: string): string;
  /** The container of a service. */
  containerOf(service: string): string;
  /** Which gateway has this address; the balancer says it in the header `x-upstream`, which only the test's copy sets. */
  gatewayAt(upstream: string | null): GatewayName | undefined;
  /** Kills a gateway; the end of the test starts it again. */
  killForNow(gateway: GatewayName): Promise<void>;
  /** Starts a service that was killed or stopped, and resolves when it is healthy. */
  startAgain(service: string): Promise<void>;
  /** Ends and removes everything. */
  down(): Promise<void>;
}

/** An old HTTP+SSE server in a container of its own, beside the example's services. */
const oldServer = `
services:
  old-server:
    image: node:24-bookworm-slim
    hostname: old-server
    user: "1000:1000"
    init: true
    command: ["node", "/srv/servers/sse-server.mjs"]
    environment:
      HOST: 0.0.0.0
    volumes: ["./examples/servers:/srv/servers:ro"]
    networks: [front]
    healthcheck:
      test:
        - CMD
        - node
        - -e
        - "require('node:http').get('http://127.0.0.1:9000/', ({ statusCode }) => process.exit(statusCode === 204 ? 0 : 1)).on('error', () => process.exit(1))"
      interval: 5s
      timeout: 3s
    read_only: true
    cap_drop: [ALL]
`;

/**
 * `docker compose up --build` in a copy of the checkout, as a project of its own, with the load balancer on a free port. Resolves when all services are healthy.
 * @param extra a server beside the example's own; none unless it is given
 */
export async function composeUp(extra?: 'old-server'): Promise<Compose> {
  const checkout = await copyCheckout();
  const folder = join(checkout, 'examples/two-hosts-with-redis-and-nginx');
  const configuration = join(checkout, 'deploy/nginx.conf');
  const text = await readFile(configuration, 'utf8');
  const header = 'location / {\n      add_header x-upstream $upstream_addr always;';
  await writeFile(configuration, text.replace('location / {', header));
  const files = ['--file', 'docker-compose.yml'];
  if (extra !== undefined) {
    const file = JSON.parse(await readFile(join(folder, 'gangway.json'), 'utf8'));
    file.mcpServers.old = { url: 'http://old-server:9000/sse', transport: 'sse' };
    await writeFile(join(folder, 'gangway.json'), JSON.stringify(file));
    await writeFile(join(checkout, 'old-server.yaml'), oldServer);
    files.push('--file', 'old-server.yaml');
  }

  const project = `gangway-${randomBytes(4).toString('hex')}`;
  const env = { ...process.env, COMPOSE_PROJECT_NAME: project, BALANCER_PORT: '', DOCKER_BUILDKIT: '1' };
  await prepareImages(checkout);
  const [file, first] = lab === undefined ? ['docker', ['compose']] : [lab, ['compose']];
  const compose = (...args: string[]) =>
    run(file, [...first, ...files, ...args], { cwd: checkout, env, maxBuffer: 64 * 1024 * 1024 });

  const down = async (): Promise<void> => {
    await compose('down', '--volumes', '--timeout', '5');
    await rm(checkout, { recursive: true });
  };
  try {
    await compose('up', '--build', '--detach');
    const containers = new Map<string, string>();
    const addresses = new Map<string, GatewayName>();
    const services = ['gateway-1', 'gateway-2', 'balancer', 'redis', ...(extra === undefined ? [] : [extra])];
    for (const service of services) {
      containers.set(service, (await compose('ps', '--quiet', service)).stdout.trim());
    }
    const containerOf = (service: string): string => containers.get(service) ?? '';
    const noteAddress = async (service: GatewayName): Promise<void> => {
      const template = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}';
      for (const address of (await docker('inspect', '--format', template, containerOf(service))).split(' ')) {
        if (address !== '') addresses.set(`${address}:8080`, service);
      }
    };
    const isHealthy = async (service: string): Promise<boolean> =>
      (await docker('inspect', '--format', '{{.State.Health.Status}}', containerOf(service))) === 'healthy';
    const untilHealthy = (service: string): Promise<unknown> =>
      waitFor(() => isHealthy(service), { deadlineMs: 120_000, intervalMs: 250, what: `${service} to be healthy` });
    for (const service of containers.keys()) await untilHealthy(service);
    await noteAddress('gateway-1');
    await noteAddress('gateway-2');
    const published = (await docker('port', containerOf('balancer'), '8080/tcp')).split('\n')[0];
    const url = `http://${published}/mcp`;
    const startAgain = async (service: string): Promise<void> => {
      await docker('start', containerOf(service));
      await untilHealthy(service);
      if (service !== 'gateway-1' && service !== 'gateway-2') return;
      await noteAddress(service);
      // What docs/scaling.md says to do where an address may have changed.
      await docker('exec', containerOf('balancer'), 'nginx', '-s', 'reload');
      const seen = new Set<GatewayName | undefined>();
      const isServed = async (): Promise<boolean> => {
        const { headers } = await open(new URL('/readyz', url).href, { method: 'GET' });
        seen.add(addresses.get(String(headers['x-upstream'])));
        return seen.has('gateway-1') && seen.has('gateway-2');
      };
      await waitFor(isServed, { deadlineMs: 30_000, intervalMs: 100, what: 'both gateways to be in the rotation' });
    };
    return {
      url,
      urlOf: (server) => `http://${published}/${server}/mcp`,
      containerOf,
      gatewayAt: (upstream) => addresses.get((upstream ?? '').split(', ').at(-1) ?? ''),
      startAgain,
      async killForNow(gateway) {
        onTestFinished(() => startAgain(gateway), 120_000);
        await docker('kill', containerOf(gateway));
      },
      down,
    };
  } catch (error) {
    await down();
    throw error;
  }
}
