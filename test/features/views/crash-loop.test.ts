import { expect, test } from 'vitest';
import { startView } from './view-fixture.ts';

test('[F12] [P8] a server of a view that ends six times within a minute is in a crash loop, and the others go on', async () => {
  const answer = (method: unknown) => (method === 'tools/call' ? { result: { content: [] } } : undefined);
  const { servers, request, crashLoops } = await startView({ answers: { a: answer, b: answer } });
  const { a } = servers;
  for (let losses = 1; losses <= 6; losses += 1) {
    expect(await request('tools/call', { name: 'a__x' })).toHaveProperty('result');
    expect(crashLoops.items).toEqual([]);
    a?.backend.ends();
  }
  expect(await crashLoops.next()).toEqual(['a', expect.closeTo(30_000, -3)]);
  expect(await request('tools/call', { name: 'a__x' })).toMatchObject({ error: { code: expect.any(Number) } });
  expect(await request('tools/call', { name: 'b__x' })).toHaveProperty('result');
  expect(a?.opened).toHaveLength(6);
});
