import { randomBytes } from 'node:crypto';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { walk, withOptions } from '../examples/walk.ts';
import { root } from '../support/gateway.ts';
import { findFreePort } from '../support/redis-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { docker, lab, prepareImages } from './engine.ts';

/** The pages that need Docker, followed as a reader does. The others are in test/examples. */

beforeAll(() => prepareImages(root), 600_000);

const everything = 'node /checkout/node_modules/@modelcontextprotocol/server-everything/dist/index.js';

/** The lab has `build TAG FOLDER [arguments]`, `compose [arguments]` and `docker [arguments]`. */
const byLab = `
case $1 in
  compose) lab "$@" ;;
  build)
    shift
    rest=()
    while [ $# -gt 1 ]; do
      case $1 in
        --tag) tag=$2; shift ;;
        --quiet) ;;
        *) rest+=("$1") ;;
      esac
      shift
    done
    # As with --quiet: an output only if it fails.
    output=$(lab build "$tag" "$1" "\${rest[@]}" 2>&1) || { echo "$output"; exit 1; } ;;
  *) lab docker "$@" ;;
esac`;

/** Runs the lab without the lines that it writes about itself. */
const quietLab = `{
  "${lab}" "$@" 2>&1 >&3 3>&- | grep --invert-match '^docker-lab:' >&2 3>&-
  return \${PIPESTATUS[0]}
} 3>&1`;

/**
 * The Docker client of this machine, or the lab in its place. Each container of `docker run` sees the checkout, so that no server
 * has to be downloaded.
 */
const client = `
case $1 in
  run) shift; set -- run --volume "${root}:/checkout:ro" "$@" ;;
esac
${lab === undefined ? withOptions('docker') : `lab() { ${quietLab}; }\n${byLab}`}`;

const id = randomBytes(4).toString('hex');

/** Follows a page. Its image, its containers and its port are those of this test. */
async function follow(
  page: string,
  { folder, isOnHost = false, services = '' }: { folder?: string; isOnHost?: boolean; services?: string } = {},
) {
  const [published, prometheus, grafana] = [await findFreePort(), await findFreePort(), await findFreePort()];
  onTestFinished(async () => {
    const all = await docker('ps', '--all', '--quiet', '--filter', `name=${id}`);
    if (all !== '') await docker('rm', '--force', ...all.split('\n'));
  }, 120_000);
  return walk({
    page,
    ...(folder !== undefined && { folder }),
    buildsImage: true,
    // Ports in a container stay as they are.
    ...(isOnHost
      ? { ports: [8080] }
      : {
          replace: {
            '127.0.0.1:8080': `127.0.0.1:${published}`,
            '127.0.0.1:9090': `127.0.0.1:${prometheus}`,
            '127.0.0.1:3000': `127.0.0.1:${grafana}`,
          },
        }),
    instead: {
      'up --build --detach': `up --build --detach${services}`,
      'npx -y @modelcontextprotocol/server-everything': everything,
      '--name gangway': `--name gangway-${id}`,
      '--force gangway': `--force gangway-${id}`,
      '--tag mcp-gangway': `--tag mcp-gangway-test`,
      ' mcp-gangway --': ` mcp-gangway-test --`,
      'mcp-gangway check': 'mcp-gangway-test check',
      'FROM mcp-gangway': 'FROM mcp-gangway-test',
    },
    env: {
      BALANCER_PORT: `${published}`,
      COMPOSE_PROJECT_NAME: `gangway${id}`,
      COMPOSE_DOCKER_CLI_BUILD: '1',
      DOCKER_BUILDKIT: '1',
    },
    programs: { docker: client },
    deadlineMs: 280_000,
  });
}

it('examples/stdio-in-docker', async () => {
  const { outputs } = await follow('examples/stdio-in-docker/README.md');
  expect(outputs).toHaveLength(3);
}, 600_000);

it('docs/recipes/stdio-in-docker.md', async () => {
  await follow('docs/recipes/stdio-in-docker.md', { folder: '.' });
}, 1_200_000);

it('examples/container-per-server, where a gateway that is killed leaves no container', async () => {
  const example = await follow('examples/container-per-server/README.md', { isOnHost: true });
  const count = `node ../ask.mjs http://127.0.0.1:8080/mcp count '{"to":100000,"everyMs":100}'`;
  await example.run(`${count} > three.txt & until grep --quiet 'progress 1 ' three.txt; do sleep 0.1; done`);
  expect(await docker('ps', '--quiet', '--filter', 'ancestor=demo-server')).not.toBe('');
  await example.end('2', 'SIGKILL');
  const isGone = async () => (await docker('ps', '--quiet', '--filter', 'ancestor=demo-server')) === '';
  await waitFor(isGone, { deadlineMs: 60_000, intervalMs: 200, what: 'the container to end' });
}, 600_000);

it('examples/two-hosts-with-redis-and-nginx', async () => {
  const { outputs } = await follow('examples/two-hosts-with-redis-and-nginx/README.md');
  expect(outputs[3]).toMatch(/Counted to 150 on gateway-2\.|took effect is unknown/);
}, 1_200_000);

// The lab has no Grafana.
it('examples/prometheus-and-grafana', async () => {
  const page = 'examples/prometheus-and-grafana/README.md';
  const { outputs } = await follow(page, lab === undefined ? {} : { services: ' gateway prometheus' });
  // Prometheus has seen the one session.
  expect(outputs[2]).toContain(',"1"]');
}, 600_000);
