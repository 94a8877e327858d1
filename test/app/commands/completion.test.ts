import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { renderCompletion } from '../../../src/app/commands/completion.ts';

/** What bash offers for the last of these words. */
function offeredFor(...words: string[]): string[] {
  const quoted = ['mcp-gangway', ...words].map((word) => `'${word}'`).join(' ');
  const script = `${renderCompletion('bash')}COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}; _mcp_gangway; echo "\${COMPREPLY[*]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split(' ');
}

test('a command without options of the gateway has only its own flags', () => {
  expect(offeredFor('key', 'alice', '--')).toEqual(['--add', '--scope', '--expires', '--help']);
  expect(offeredFor('completion', 'bash', '--')).toEqual(['--help']);
  expect(offeredFor('check', '--')).toEqual(expect.arrayContaining(['--json', '--port']));
});

test('words, values and commands are offered where they can follow', () => {
  expect(offeredFor('')).toContain('key');
  expect(offeredFor('config', '')).toEqual(['print', 'schema']);
  expect(offeredFor('--share', 'us')).toEqual(['user']);
});

test('fish gets a description for each flag with one, in quotes that nothing in it ends', () => {
  const lines = renderCompletion('fish').split('\n');
  expect(lines).toContain("complete -c mcp-gangway -l config -d 'Configuration file with servers and options.' -r");
  expect(lines).toContain("complete -c mcp-gangway -l json -d 'Print one JSON object instead of text.'");
  for (const line of lines) expect(line.replaceAll("\\'", '').split("'").length % 2).toBe(1);
});
