import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';
import { walk } from './walk.ts';

/** In place of Docker, which test/docker has: it runs the server as a process, and lists those that run. */
const standIn = `
case $1 in
  build) ;;
  run)
    printf '%s\\n' "$@" > arguments
    mkdir -p running
    touch running/$$
    trap 'rm -f running/$$' EXIT
    node ../servers/stdio-server.mjs ;;
  ps) if [ -d running ]; then ls running; fi ;;
esac`;

it('a container per server: each session has its own, which ends with the session', async () => {
  const example = await walk({
    page: 'examples/container-per-server/README.md',
    ports: [8080],
    programs: { docker: standIn },
  });
  const { mcpServers } = JSON.parse(readFileSync(`${root}examples/container-per-server/gangway.json`, 'utf8'));
  expect(readFileSync(join(example.folder, 'arguments'), 'utf8').trim().split('\n')).toEqual(mcpServers.demo.args);
});
