import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { asMessage } from '../../../../support/as-message.ts';
import { descendantsOf } from '../../../../support/processes.ts';
import { waitFor } from '../../../../support/wait-for.ts';
import { openChild, openProgram, stopped } from '../harness.ts';

const mebibyte = 2 ** 20;
const isRoot = process.geteuid?.() === 0;

/** What a shell that was started so writes. */
async function said(script: string, how: Partial<Parameters<typeof openProgram>[0]>): Promise<readonly string[]> {
  const opened = openProgram({ command: 'sh', args: ['-c', script], ...how });
  await opened.end();
  return opened.messages.items;
}

describe.runIf(isRoot)('a server of another user', () => {
  it('has no other group', async () => {
    expect(await said('id -u; id -g; id -G', { uid: 12345, gid: 23456 })).toEqual(['12345', '23456', '23456']);
  });

  it('is ended like any other', async () => {
    // A shell, since the folder of this project may be closed to other users.
    const args = ['-c', `trap '' TERM; echo '"ready"'; while :; do sleep 1; done`];
    const opened = openProgram({ command: 'sh', args, uid: 12345, gid: 23456 });
    await opened.messages.next();
    await opened.backend.close();
    await stopped(opened.backend.pid as number);
  });

  it('that may not run the command: the sentence says so', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gangway-limits-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const command = join(folder, 'own');
    writeFileSync(command, '#!/bin/sh\n');
    chmodSync(command, 0o700);
    chmodSync(folder, 0o755);
    const opened = openProgram({ command, uid: 12345, gid: 23456 });
    const said = expect.stringContaining('The user of "user" may not run the command');
    expect(await opened.end()).toMatchObject({ reason: 'failed', detail: said });
  });
});

describe.runIf(process.platform === 'linux')('memory', () => {
  it('of all its processes together over the limit: all of them are killed, and why is told', async () => {
    const opened = openChild('eats-memory', [], { maxMemoryBytes: 400 * mebibyte });
    opened.backend.send(asMessage('{"jsonrpc":"2.0","id":1,"method":"x"}'));
    await opened.messages.next();
    const processes = await descendantsOf(opened.backend.pid as number);
    expect(processes).toHaveLength(1);
    opened.backend.send(asMessage('{"jsonrpc":"2.0","id":2,"method":"test/eat","params":{"eat":400}}'));
    const { reason, detail } = await opened.end();
    expect({ reason, detail }).toEqual({
      reason: 'memory_limit',
      detail: expect.stringMatching(
        /^The server was killed because it used \d{9,} bytes of memory\. The limit is 419430400 /,
      ),
    });
    await opened.backend.close();
    for (const pid of [opened.backend.pid as number, ...processes.map((each) => each.pid)]) await stopped(pid);
    expect(opened.ends).toHaveLength(1);
  });

  it('below the limit is nobody’s business, also beside another that is over it', async () => {
    const small = openChild('eats-memory', [], { maxMemoryBytes: 4_000 * mebibyte });
    const large = openChild('eats-memory', [], { maxMemoryBytes: mebibyte });
    expect((await large.end()).reason).toBe('memory_limit');
    small.backend.send(asMessage('{"jsonrpc":"2.0","id":1,"method":"x"}'));
    await small.messages.next();
    expect(small.ends).toEqual([]);
    // and one that comes after the watch had nothing left to do is watched again
    await small.backend.close();
    const next = openChild('eats-memory', [], { maxMemoryBytes: mebibyte });
    await waitFor(() => next.ends.length === 1, { what: 'the end of the next one' });
    expect(next.ends[0]?.reason).toBe('memory_limit');
  });
});
