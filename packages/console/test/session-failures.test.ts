import { expect, test } from 'vitest';
import type { CallOutcome, EndedCall } from '../src/host.ts';
import { SessionFailures } from '../src/record/incidents/session-failures.ts';

const ended = (session: string | undefined, outcome: CallOutcome): EndedCall => ({
  type: 'call-ended',
  origin: { server: 'files', principal: undefined, session },
  ...{ method: 'tools/call', name: undefined, outcome, durationMs: 1, serverMs: 1, waitedMs: 0 },
  ...{ bytesIn: 0, bytesOut: 0, requestId: undefined },
});

test('the failed calls of a session are counted, and the last one is described', () => {
  const failures = new SessionFailures();
  const name = { server: 'files', session: 'abcd1234' };
  for (const kind of ['ok', 'left'] as const) failures.count(ended(name.session, { kind }));
  failures.count(ended(undefined, { kind: 'tool_error' }));
  expect(failures.of(name)).toBeUndefined();
  const texts = [
    [{ kind: 'tool_error' }, 'tools/call: the tool reported an error'],
    [{ kind: 'error', code: -32602 }, 'tools/call: the server answered with error -32602'],
    [{ kind: 'error', code: undefined }, 'tools/call: the server answered with an error'],
    [{ kind: 'fault', reason: 'server_exited' }, 'tools/call: the gateway answered with server_exited'],
  ] as const;
  for (const [index, [outcome, text]] of texts.entries()) {
    failures.count(ended(name.session, outcome));
    expect(failures.of(name)).toMatchObject({ count: index + 1, last: text });
  }
  expect(failures.of({ server: 'mail', session: name.session })).toBeUndefined();
  failures.forget(name);
  expect(failures.of(name)).toBeUndefined();
});
