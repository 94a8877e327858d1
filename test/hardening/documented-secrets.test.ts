import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { root } from '../support/gateway.ts';

const under = (folder: string): string[] =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`);
const pages = ['README.md', 'SECURITY.md', ...under('docs'), ...under('examples')].filter(
  (name) => name.endsWith('.md') && !name.includes('node_modules'),
);

it('[S-18] no page puts a secret on the command line of the gateway, where other users read it', () => {
  expect(pages.length).toBeGreaterThan(10);
  const commands = pages.flatMap((page) =>
    [...readFileSync(`${root}${page}`, 'utf8').matchAll(/^.*mcp-gangway .*$/gm)].map(([line]) => `${page}: ${line}`),
  );
  const secret =
    /mcp-gangway\s.*(?:Bearer|--(?:header|env)[ =]\S*(?:TOKEN|KEY|SECRET|PASSWORD)\S*=?\$|:\/\/[^\s/:@]*:[^\s/@]+@)/i;
  expect(commands.filter((line) => secret.test(line))).toEqual([]);
  expect(secret.test('mcp-gangway --header "Authorization: Bearer $TOKEN" https://mcp.example.com/sse')).toBe(true);
});

it('[S-18] SECURITY.md says what tools that run beside Redis can do, and what a server of the same user can read', () => {
  const security = readFileSync(`${root}SECURITY.md`, 'utf8');
  expect(security).toContain('/proc/<pid>/environ');
  expect(security).toContain("tools in the gateway's container can reach a Redis without a password");
});
