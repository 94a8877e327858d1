import { testRequests, testSubscriptions } from './large-requests.ts';

testSubscriptions('a', 'filtered');
testRequests(
  ['a', 'resources/read', { uri: 'test://wait' }],
  ['view', 'tools/call', { name: 'wait' }],
  ['view', 'resources/read', { uri: 'test://wait' }],
);
