import { expect, it } from 'vitest';
import type { RerunPolicy } from '../../../src/core/call/rerun.ts';
import type { CredentialMarks } from '../../../src/core/keys/credential-marks.ts';
import { readGatewayMessage } from '../../../src/core/protocol/message/message.ts';
import type { GatewayTasks } from '../../../src/features/tasks/gateway-tasks.ts';
import { ModernTasks } from '../../../src/features/tasks/modern-tasks.ts';

const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities';
const withTasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

function callWith(capabilities: object | undefined) {
  const _meta = capabilities && { [capabilitiesKey]: capabilities };
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { _meta, name: 'echo' } };
  return readGatewayMessage(Buffer.from(JSON.stringify(request)));
}

it('a call may become a task if its own client declares tasks, whatever the client before it declared', () => {
  const tasks = new ModernTasks({
    tasks: {} as GatewayTasks,
    afterMs: 1,
    marks: {} as CredentialMarks,
    commitAfterMs: 1,
    slowReaderMs: 1,
    server: 'a',
    reruns: {} as RerunPolicy,
    isLocalToInstance: false,
  });
  const large = { experimental: { text: { value: 'x'.repeat(5_000) } } };
  const declared = [
    withTasks,
    {},
    withTasks,
    undefined,
    withTasks,
    // The same length as before.
    { extensions: { 'io.modelcontextprotocol/tasky': {} } },
    { ...large, ...withTasks },
    large,
  ];
  const may = declared.map((capabilities) => tasks.mayMake(callWith(capabilities)));
  expect(may).toEqual([true, false, true, false, true, false, true, false]);
});
