import { readFile } from 'node:fs/promises';
import { expect, onTestFinished, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { callModern } from '../support/modern-client.ts';
import { showsVariables, variableOf } from '../support/shown-variables.ts';
import { startTokenServer } from '../support/token-server.ts';

const key = 'canary-'.repeat(6);
const env = { GANGWAY_API_KEYS: `alice:sha256:${digestOfKey(key)}` };
const headers = { Authorization: `Bearer ${key}`, 'X-GitHub-Token': 'canary-of-github', 'X-Api-Key': 'canary-of-api' };

test("[S04] a child learns nothing of its client's tokens but the one that is configured", async () => {
  const args = ['--defaults.credentials', 'GITHUB_TOKEN={header:X-GitHub-Token}'];
  const gateway = await startLocalGateway({ args, env, command: showsVariables });
  const session = await initialize(gateway.url, { headers });
  const { value, pid } = await variableOf(session, 'GITHUB_TOKEN');
  expect(value).toBe('canary-of-github');
  const environment = (await readFile(`/proc/${pid}/environ`, 'latin1')).split('\0');
  expect(environment.filter((entry) => entry.includes('canary'))).toEqual(['GITHUB_TOKEN=canary-of-github']);
  expect(await readFile(`/proc/${pid}/cmdline`, 'latin1')).not.toContain('canary');
  await session.delete();
});

test("[S04] a child learns nothing of its client's tokens where none is configured", async () => {
  const gateway = await startLocalGateway({ env, command: showsVariables });
  const session = await initialize(gateway.url, { headers });
  const { pid } = await variableOf(session, 'GITHUB_TOKEN');
  expect(await readFile(`/proc/${pid}/environ`, 'latin1')).not.toContain('canary');
  await session.delete();
});

test.each(['sse', 'http'] as const)(
  "[S04] a remote server of %s does not get its client's tokens",
  async (transport) => {
    const server = await startTokenServer();
    onTestFinished(() => server.close());
    const args = ['--transport', transport, '--header', 'Authorization: Bearer own', server.urls[transport]];
    const gateway = await startLocalGateway({ args, env });
    const session = await initialize(gateway.url, { headers });
    await session.callTool('token');
    expect((await callModern(gateway.url, 'token', {}, { headers })).status).toBe(200);
    await session.delete();
    expect(server.seen.length).toBeGreaterThan(3);
    expect(JSON.stringify(server.seen)).not.toContain('canary');
  },
);
