import { testRequests, testSubscriptions } from './large-requests.ts';

// The other methods and endpoints: tables-many.test.ts.
testSubscriptions('view');
testRequests(['a', 'tools/call', { name: 'wait' }], ['filtered', 'tools/call', { name: 'wait' }]);
