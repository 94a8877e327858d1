import { describe, expect, it } from 'vitest';
import { readGatewayMessage } from '../../../../../src/core/protocol/message/message.ts';
import { Subscription } from '../../../../../src/features/eras/modern/changes/subscription.ts';
import { readMessage } from '../../../../support/fake-backend.ts';

const tools = readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'));
const prompts = readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}'));

function create() {
  const heard: string[] = [];
  let ends = 0;
  const notifications = { toolsListChanged: true, promptsListChanged: true };
  const params = { notifications };
  const request = readMessage(JSON.stringify({ jsonrpc: '2.0', id: 'L', method: 'subscriptions/listen', params }));
  const answer = {
    message: ({ method }: { method?: string | undefined }) =>
      heard.push(String(method?.split('notifications/')[1])) > 0,
    response: ({ id }: { id?: unknown }) => void heard.push(`result ${id}`),
    fault: (reason: string) => void heard.push(reason),
  };
  const subscription = new Subscription(request, answer, () => {
    ends += 1;
  });
  return { subscription, heard, ends: () => ends };
}

describe('a subscription of a modern client', () => {
  it('[R5.03] gets what changed before its acknowledgement right after it, as far as it was agreed', () => {
    const { subscription, heard } = create();
    for (const change of [tools, prompts]) subscription.notify(change);
    expect(heard).toEqual([]);
    subscription.acknowledge({ toolsListChanged: true });
    subscription.notify(tools);
    expect(heard).toEqual(['subscriptions/acknowledged', 'tools/list_changed', 'tools/list_changed']);
  });

  it('[P8] keeps at most 100 changes before its acknowledgement; after more of them anything may have changed', () => {
    const { subscription, heard } = create();
    for (let n = 0; n < 101; n += 1) subscription.notify(tools);
    subscription.acknowledge({ toolsListChanged: true, promptsListChanged: true });
    expect(heard).toEqual(['subscriptions/acknowledged', 'tools/list_changed', 'prompts/list_changed']);
  });

  it('[P9] ends with a result once it is acknowledged, else with a fault, and once only', () => {
    const { subscription, heard, ends } = create();
    subscription.acknowledge({ toolsListChanged: true });
    for (let n = 0; n < 2; n += 1) subscription.close();
    subscription.notify(tools);
    expect([heard.slice(1), ends()]).toEqual([['result L'], 1]);
    const early = create();
    early.subscription.close();
    expect([early.heard, early.ends()]).toEqual([['draining'], 1]);
  });

  it('reports what its server agreed to last', () => {
    const { subscription, heard } = create();
    subscription.acknowledge({ toolsListChanged: true });
    subscription.acknowledge({ promptsListChanged: true });
    for (const change of [tools, prompts]) subscription.notify(change);
    expect(heard).toEqual(['subscriptions/acknowledged', 'prompts/list_changed']);
  });
});
