import { expect, test } from 'vitest';
import { startGateway } from './gateway.ts';
import { createJournal } from './journal.ts';
import { openJournaled } from './journaled-client.ts';

test('a journal has what calls did, and a client what became of them', async () => {
  const journal = await createJournal();
  const gateway = await startGateway({ command: journal.command, args: ['--timeouts.drain', '0'] });
  const client = await openJournaled(gateway.url, 'calm');
  const [quick, streamed, held] = [
    client.call(gateway.url, { tool: 'work', deadlineMs: 20_000 }),
    client.call(gateway.url, { tool: 'work', args: { ms: 300, reports: 2 }, deadlineMs: 20_000 }),
    client.call(gateway.url, { tool: 'hold', deadlineMs: 2_000 }),
  ];
  expect([await quick.outcome, await streamed.outcome]).toEqual([{ outcome: 'answered' }, { outcome: 'answered' }]);
  await journal.hasStarted(held.mark);
  expect(journal.done()).toEqual([quick.mark, streamed.mark]);
  expect(await held.outcome).toEqual({ outcome: 'none' });
  expect(journal.violations([client.transcript]).map(({ kind }) => kind)).toEqual(['no_answer', 'late']);
  await journal.remove();
});
