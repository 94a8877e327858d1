import { afterEach, describe, expect, it } from 'vitest';
import { SessionCalls } from '../../../../../src/core/call/session-calls.ts';
import { Route } from '../../../../../src/core/multiplex/route.ts';
import { readGatewayMessage } from '../../../../../src/core/protocol/message/message.ts';
import type { LogLevel } from '../../../../../src/core/protocol/modern/log-levels.ts';
import { attributeInGroup } from '../../../../../src/features/eras/modern-on-legacy/session/attribution.ts';

const nothing = (): void => undefined;
const answerWith = (hasStream: boolean) => ({
  ...{ stream: undefined, hasStream, message: () => hasStream, response: nothing, fault: nothing },
});
const [heard, gone] = [answerWith(true), answerWith(false)];

/** The users whose calls the session has had; none if it has one user. */
let users: readonly string[] = [];
afterEach(() => {
  users = [];
});

function setUp(
  ...calls: readonly {
    readonly id: number;
    readonly method?: string;
    readonly logLevel?: LogLevel;
    readonly isGone?: boolean;
    readonly isCancelled?: boolean;
  }[]
) {
  const table = new SessionCalls();
  for (const { id, method = 'tools/call', logLevel, isGone = false, isCancelled = false } of calls) {
    const answer = isGone ? gone : heard;
    table.add({
      ...{ id, method, progressToken: id, taskId: undefined, answer, request: undefined, logLevel },
      ...{ activeAt: 0, startedAt: 0, ...(isCancelled && { cancelTimer: setTimeout(() => undefined) }) },
    });
  }
  const { length } = users;
  const route = new Route(
    table,
    (call) => call,
    () => length === 0,
  );
  for (const subject of users) route.users.note({ issuer: 'keys', subject, client: '' });
  return (method: string, params: object = {}, of?: readonly number[], id?: string): unknown => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...(id && { id }), method, params });
    const to = attributeInGroup(readGatewayMessage(Buffer.from(text)), table, route, of);
    return typeof to === 'string' ? to : to.id;
  };
}

const log = 'notifications/message';

describe('[P2] the attribution of server messages in a group session', () => {
  it('[R4.02] sends a question to the newest call that can have caused it, or to the call that it came beside', () => {
    const ask = (to: ReturnType<typeof setUp>, of?: readonly number[]) => to('elicitation/create', {}, of, 'q');
    expect(ask(setUp({ id: 1 }, { id: 2, method: 'tools/list' }))).toBe(1);
    expect(ask(setUp({ id: 1 }, { id: 2 }))).toBe(2);
    expect(ask(setUp({ id: 1 }, { id: 2 }, { id: 3, method: 'tools/list' }))).toBe(2);
    expect(ask(setUp({ id: 1 }, { id: 2 }), [1])).toBe(1);
    expect(ask(setUp({ id: 1, method: 'tools/list' }))).toBe('nobodys');
    expect(ask(setUp({ id: 1, method: 'tools/list' }, { id: 2 }), [1])).toBe('nobodys');
    expect(ask(setUp({ id: 1, isGone: true }))).toBe('nobodys');
    expect(ask(setUp())).toBe('nobodys');
  });

  it('sends progress to the call with its token', () => {
    const to = setUp({ id: 1 }, { id: 2 });
    expect(to('notifications/progress', { progressToken: 2, progress: 1 })).toBe(2);
    expect(to('notifications/progress', { progressToken: 3, progress: 1 })).toBe('nobodys');
  });

  it('[R3.09] sends a log message to the only call in flight, if its client wants it', () => {
    const warning = { level: 'warning', data: 'x' };
    expect(setUp({ id: 1, logLevel: 'info' })(log, warning)).toBe(1);
    expect(setUp({ id: 1, logLevel: 'error' })(log, warning)).toBe('unwanted');
    expect(setUp({ id: 1 })(log, warning)).toBe('unwanted');
    expect(setUp({ id: 1, logLevel: 'info' }, { id: 2 })(log, warning)).toBe('nobodys');
    expect(setUp({ id: 1, logLevel: 'info' }, { id: 2 })(log, warning, [1])).toBe(1);
    expect(setUp({ id: 1 }, { id: 2 })(log, warning)).toBe('unwanted');
  });

  it('[J-02] [P11] sends a vendor notification to the call that it came beside or the only call, else to nobody', () => {
    const vendor = 'notifications/acme/hello';
    expect(setUp({ id: 1 })(vendor)).toBe(1);
    expect(setUp({ id: 1 }, { id: 2 })(vendor)).toBe('nobodys');
    expect(setUp({ id: 1 }, { id: 2 })(vendor, {}, [2])).toBe(2);
    expect(setUp({ id: 1 })(vendor, {}, [])).toBe('nobodys');
    expect(setUp({ id: 1, isGone: true })(vendor)).toBe('nobodys');
    expect(setUp()(vendor)).toBe('nobodys');
  });

  it('[P11] sends what names no call to nobody once several users had calls: it may be a late one for another', () => {
    users = ['alice', 'alice'];
    expect(setUp({ id: 1, logLevel: 'info' })(log, { level: 'info', data: 'x' })).toBe(1);
    users = ['alice', 'bob'];
    const to = setUp({ id: 1, logLevel: 'info' });
    expect(to(log, { level: 'info', data: 'x' })).toBe('nobodys');
    expect(to(log, { level: 'info', data: 'x' }, [1])).toBe(1);
    expect(to('notifications/acme/hello')).toBe('nobodys');
    expect(to('elicitation/create', {}, undefined, 'q')).toBe(1);
  });

  it('sends it to the only call that is waited for, if all calls are of one user: a cancelled one has the same user', () => {
    const calls = [
      { id: 1, logLevel: 'info', isCancelled: true },
      { id: 2, logLevel: 'info' },
    ] as const;
    const [info, vendor] = [{ level: 'info', data: 'x' }, 'notifications/acme/hello'];
    expect(setUp(...calls)(log, info)).toBe(2);
    expect(setUp(...calls)(vendor)).toBe(2);
    users = ['alice'];
    expect(setUp(...calls)(log, info)).toBe('nobodys');
    expect(setUp(...calls)(vendor)).toBe('nobodys');
  });

  it('sends notifications for all clients to the GET stream', () => {
    const to = setUp({ id: 1 });
    expect(to('notifications/tools/list_changed')).toBe('get');
    expect(to('notifications/resources/updated', { uri: 'x:y' })).toBe('get');
  });
});
