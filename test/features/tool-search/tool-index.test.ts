import { describe, expect, it } from 'vitest';
import { ToolIndex, ToolIndexes } from '../../../src/features/tool-search/tool-index.ts';

const tool = (name: string, description = '', properties: object = {}): Buffer =>
  Buffer.from(JSON.stringify({ name, description, inputSchema: { type: 'object', properties } }));

const tools = [
  tool('github__create_issue', 'Opens a new issue in a repository', { title: { description: 'What it is about' } }),
  tool('github__listPullRequests', 'Lists what is to be merged'),
  tool('mail__send', 'Sends a letter', { recipient: { description: 'The address of a person' } }),
  tool('weather__forecast', 'Tells how the weather will be'),
];

const everything = (): boolean => true;
const named = (found: readonly Buffer[]): string[] => found.map((text) => JSON.parse(text.toString()).name);

describe('a search', () => {
  it.each([
    ['create issues', 'github__create_issue'],
    ['pull request', 'github__listPullRequests'],
    ['wheather', 'weather__forecast'],
    ['recipient address', 'mail__send'],
    ['a letter to somebody', 'mail__send'],
  ])('for "%s" finds %s first', async (query, name) => {
    const index = await ToolIndex.of(tools);
    expect(named(index.search(query, 3, everything))[0]).toBe(name);
  });

  it('finds only what the client may call, at most as many as wanted, with their own text', async () => {
    const index = await ToolIndex.of(tools);
    expect(named(index.search('github', 10, everything))).toHaveLength(2);
    expect(index.search('github', 1, everything)).toHaveLength(1);
    expect(named(index.search('github', 10, (name) => !name.includes('issue')))).toEqual(['github__listPullRequests']);
    expect(index.get('mail__send')?.equals(tools[2] as Buffer)).toBe(true);
    expect(index.get('mail__none')).toBeUndefined();
  });

  it('[P8] reads no tool that is too large, and no query that is too long', async () => {
    const large = tool('large', 'needle '.repeat(20_000));
    const index = await ToolIndex.of([large, Buffer.from('"no object"'), ...tools]);
    expect(index.search('needle', 5, everything)).toEqual([]);
    expect(index.search(`${'x '.repeat(300)}weather`, 5, everything)).toEqual([]);
  });
});

it('[P8] equal lists have one index, and only a few indexes are kept', async () => {
  const indexes = new ToolIndexes();
  const first = await indexes.of(tools);
  expect(await indexes.of(tools.map((text) => Buffer.from(text)))).toBe(first);
  for (let at = 0; at < 8; at += 1) await indexes.of([tool(`other_${at}`)]);
  expect(await indexes.of(tools)).not.toBe(first);
});
