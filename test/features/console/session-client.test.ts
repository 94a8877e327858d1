import { expect, test } from 'vitest';
import { clientNameOf } from '../../../src/features/console/session-client.ts';

const initializeOf = (clientInfo?: object): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { clientInfo } }));

const own = { name: 'mcp-gangway', version: '0.1.0' };

test.each([
  ['session', { name: 'Claude', version: '1.2' }, 'Claude 1.2'],
  ['session', undefined, ''],
  ['group', own, 'clients without a session'],
  ['group', { name: 'Field App', version: '3.1' }, 'Field App 3.1'],
] as const)('the client of a %s with %j is shown as %s', (kind, clientInfo, name) => {
  expect(clientNameOf({ kind, initialize: initializeOf(clientInfo) })).toBe(name);
});
