// Runs the JavaScript programs of docs/recipes/sdks.md ("Agent frameworks") as they are printed, at a gateway with keys.
import { execFile } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { suiteNode } from '../conformance/suite.ts';
import { blocksOf } from '../examples/page.ts';
import { root, startGateway } from '../support/gateway.ts';
import { clientsFolder, installClients } from './install-clients.ts';

const run = promisify(execFile);
const key = 'k'.repeat(40);
const page = readFileSync(`${root}docs/recipes/sdks.md`, 'utf8');
const section = page.slice(page.indexOf('## Agent frameworks'));
const programs = blocksOf(section).filter(({ language }) => language === 'js');

beforeAll(installClients, 700_000);

test('the page has a program for each framework in JavaScript', () => {
  expect(programs.map(({ heading }) => heading)).toEqual(['AI SDK', 'LangChain', 'OpenAI Agents SDK', 'Mastra']);
});

test.each(programs.map(({ heading, text }) => [heading, text] as const))(
  'the program for %s calls a tool with a key, and is refused without one',
  { timeout: 120_000 },
  async (heading, text) => {
    const gateway = await startGateway({
      env: { GANGWAY_API_KEYS: `alice:sha256:${digestOfKey(key)}` },
      command: [process.execPath, `${root}node_modules/@modelcontextprotocol/server-everything/dist/index.js`],
    });
    const file = join(clientsFolder, `recipe-${heading.replaceAll(' ', '-')}-${process.pid}.mjs`);
    writeFileSync(file, text.replaceAll('127.0.0.1:8080', `127.0.0.1:${gateway.port}`));
    const runWith = (shown: string) =>
      run(suiteNode, [file], { env: { PATH: process.env['PATH'], GANGWAY_KEY: shown }, timeout: 60_000 });
    try {
      expect((await runWith(key)).stdout.trim()).toBe('Echo: hi');
      await expect(runWith('wrong')).rejects.toThrow(/401|nauthori/);
    } finally {
      rmSync(file);
    }
  },
);
