import { describe, expect, test } from 'vitest';
import { root, startGateway } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { waitFor } from '../support/wait-for.ts';

const command = [process.execPath, `${root}test/fixtures/children/eats-memory.mjs`];
const eat = { jsonrpc: '2.0', id: 'e', method: 'test/eat', params: { eat: 400 } };

describe.runIf(process.platform === 'linux')('a server over its memory limit', () => {
  test('[F12] [P3] its calls end with memory_limit, the log says why, and the session goes on', async () => {
    const gateway = await startGateway({ args: ['--defaults.process.memory', `${400 * 2 ** 20}B`], command });
    const session = await initialize(gateway.url);
    const before = (await session.request('x')).messages[0].result.pid;
    const answer = await (await session.send(eat)).answer();
    expect(answer.messages).toMatchObject([{ id: 'e', error: { data: { reason: 'memory_limit' } } }]);
    const after = (await session.request('x')).messages[0].result.pid;
    expect(after).not.toBe(before);
    const [ended] = await waitFor(() => {
      const lines = gateway.logs().filter(({ msg }) => msg === 'server ended');
      return lines.length > 0 && lines;
    });
    expect(ended).toMatchObject({ reason: 'memory_limit', detail: expect.stringContaining('The limit is 419430400') });
  });

  test('[F12] the only server, which never keeps it: the gateway is of no use, and says why', async () => {
    const gateway = await startGateway({
      args: ['--defaults.process.memory', `${30 * 2 ** 20}B`, '--defaults.onExit', 'end'],
      command,
    }).catch((error: Error) => error);
    // The only server is tried once: it is of no use with this limit.
    if (gateway instanceof Error) expect(gateway.message).toContain('bytes of memory');
    else {
      const { exited } = gateway;
      expect((await exited).code).toBe(1);
      expect(gateway.stderr()).toContain('bytes of memory');
    }
  });
});

test('a user without a group is a fault of the configuration', async () => {
  const failed = await startGateway({ args: ['--defaults.process.user', '1000'], command }).then(
    () => '',
    (error: Error) => error.message,
  );
  expect(failed).toMatch(/ended \(2\)/);
  expect(failed).toContain('--defaults.process.user: must be USER:GROUP');
});
