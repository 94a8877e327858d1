import { expect, test } from 'vitest';
import { linkBackends } from '../../../src/core/backend/link/link.ts';
import { OfferedNames } from '../../../src/core/backend/offered-names.ts';
import { asMessage } from '../../support/as-message.ts';
import { createFakeServer } from '../../support/fake-backend.ts';

function open(names = new OfferedNames()) {
  const server = createFakeServer();
  const ignore = () => undefined;
  const events = { onMessages: ignore, onNoise: ignore, onUnanswered: ignore, onEnd: ignore };
  const backend = linkBackends(server.open, [names.watch('s')])(events);
  let id = 0;
  return {
    names,
    list(method: string, result: object): void {
      id += 1;
      backend.send(asMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method }))));
      server.backend.says({ jsonrpc: '2.0', id, result });
    },
  };
}

const tools = (...names: readonly unknown[]) => ({ tools: names.map((name) => ({ name })) });

test('a name is itself once its server has listed it, by kind, over all pages', () => {
  const { names, list } = open();
  expect(names.label('s', 'tool', 'a')).toBe('other');
  list('tools/list', { ...tools('a', 'bb'), nextCursor: 'x' });
  list('tools/list', tools('ccc'));
  list('prompts/list', { prompts: [{ name: 'p' }] });
  const label = (kind: 'tool' | 'prompt', name: string) => names.label('s', kind, name);
  expect(['a', 'bb', 'ccc', 'p'].map((name) => label('tool', name))).toEqual(['a', 'bb', 'ccc', 'other']);
  expect(label('prompt', 'p')).toBe('p');
  expect(names.label('another', 'tool', 'a')).toBe('other');
});

test('[P8] a server that lists ever new names, or something that is no list, gets no more labels', () => {
  const { names, list } = open();
  list('tools/list', { tools: 'none' });
  list('tools/list', tools(1, null, { name: 'x' }, 'x'.repeat(1_000)));
  for (let round = 0; round < 5; round += 1) {
    const some = Array.from({ length: 50 + round }, (_, index) => `tool-${round}-${index}`);
    list('tools/list', tools(...some));
  }
  const labels = new Set<string>();
  for (let round = 0; round < 5; round += 1)
    for (let index = 0; index < 60; index += 1) labels.add(names.label('s', 'tool', `tool-${round}-${index}`));
  expect(labels.size).toBe(100); // 99 of them, and other: the long name has one
  expect(labels).toContain('other');
});
