import { expect, test } from 'vitest';
import { FilterRules } from '../../../src/core/backend/filter-rules.ts';
import { NameFilter, toolKind } from '../../../src/features/filters/name-filter.ts';

test('[G-11] [P8] names of all clients take at most 16 MiB: those of the clients that came first go', async () => {
  const filter = new NameFilter(toolKind, new FilterRules([], ['x*'], {}));
  const name = (index: number): string => `${'n'.repeat(1_000)}${index}`;
  const tools = Array.from({ length: 1_900 }, (_, index) => ({ name: name(index) }));
  const list = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { tools } }));
  const clients = Array.from({ length: 12 }, (_, index) => ({ authorization: `Bearer ${index}` }));
  for (const client of clients) await filter.filter(list, client, true);
  const allowed = clients.map((client) => filter.allows(name(0), client));
  expect(allowed).toEqual([...Array(4).fill(undefined), ...Array(8).fill(true)]);
});
