import { expect, test } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import { openStdio } from '../../../../src/core/backend/stdio/stdio-backend.ts';
import { createInbox } from '../../../support/wait-for.ts';

/** Runs a program of the shell, and resolves with its last output when it has ended. */
function open(script: string) {
  const ends = createInbox<BackendEnd>();
  const stderr = createInbox<string>();
  const backend = openStdio(
    {
      command: '/bin/sh',
      args: ['-c', script],
      env: {},
      stdinCloseGraceMs: 200,
      terminateGraceMs: 200,
      onStderr: stderr.push,
    },
    {
      onMessages: () => undefined,
      onNoise: () => undefined,
      onUnanswered: () => undefined,
      onEnd: ends.push,
    },
  );
  return { backend, stderr, lastOutput: async () => (await ends.next()).lastOutput };
}

test('what a server says on stdout before it exits comes before what it says on stderr', async () => {
  const { lastOutput } = open('echo "FAILED: no DB_URL"; printf "\\033[1mbye\\n"; echo trace >&2; exit 1');
  expect(await lastOutput()).toEqual(['stdout: FAILED: no DB_URL', 'stdout: \\x1b[1mbye', 'trace']);
});

test('[P8] only the beginning of it is kept', async () => {
  const { lastOutput } = open('for n in 1 2 3 4 5 6 7; do printf "%0300d\\n" $n; done');
  expect(await lastOutput()).toEqual(Array.from({ length: 5 }, () => `stdout: ${'0'.repeat(200)}`));
});

test('once a server has sent a message, its stdout is not repeated', async () => {
  const { lastOutput } = open(`echo starting; echo '{"jsonrpc":"2.0","method":"x"}'; echo late; exit 1`);
  expect(await lastOutput()).toEqual([]);
});

test('a line whose end has not come is named when the backend is closed', async () => {
  const { backend, stderr, lastOutput } = open('printf "half a line"; echo ready >&2; read line');
  await stderr.next();
  await new Promise((resolve) => setImmediate(resolve)); // both pipes are read in one turn
  await backend.close();
  expect(await lastOutput()).toEqual(['stdout, without a line end: half a line', 'ready']);
});
