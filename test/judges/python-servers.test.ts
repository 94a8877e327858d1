// Published servers from PyPI, each asked the same directly on STDIO and through the gateway.
import { beforeAll, describe } from 'vitest';
import { hasUv, installPythonServers } from './install-clients.ts';
import { pythonServers } from './published-servers.ts';
import { judgeServers } from './server-arms.ts';

const count = pythonServers.length;
if (!hasUv)
  process.stderr.write(`${count} servers from PyPI are not judged: uv is missing. Install it with: pip install uv
`);

describe.skipIf(!hasUv)('with uv', () => {
  beforeAll(() => installPythonServers(pythonServers), 1_800_000);

  judgeServers('Published servers from PyPI', pythonServers);
});
