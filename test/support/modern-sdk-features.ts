import { expect } from 'vitest';
import { metaKeys } from './modern-client.ts';
import type { ModernSdkClient } from './modern-sdk-client.ts';
import { answers, type Progress } from './sdk-clients.ts';
import { waitFor } from './wait-for.ts';

/** A feature and the test of it, on one client that all features share. */
export type ModernFeature = readonly [name: string, run: (client: ModernSdkClient) => Promise<void>];

const named = (method: string) => (received: { method: string }) => received.method === method;

/** Features of single requests, wherever those are answered. */
export const statelessFeatures: readonly ModernFeature[] = [
  [
    'tools',
    async ({ client, callTool }) => {
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain('echo');
      expect(await callTool('echo', { text: 'täst 🌍 \u2028' })).toBe('täst 🌍 \u2028');
      expect((await client.callTool({ name: 'test_error_handling', arguments: {} })).isError).toBe(true);
      await expect(callTool('no_such_tool')).rejects.toThrow('Unknown tool');
    },
  ],
  [
    '[R2.16] a tool with a mirrored parameter',
    async ({ callTool }) => {
      expect(await callTool('test_x_mcp_header', { region: 'ü' })).toBe('region=ü');
    },
  ],
  [
    'prompts, resources and completion',
    async ({ client }) => {
      const { messages } = await client.getPrompt({
        name: 'test_prompt_with_arguments',
        arguments: { arg1: 'a', arg2: 'b' },
      });
      expect(JSON.stringify(messages)).toContain("arg1='a', arg2='b'");
      const { contents } = await client.readResource({ uri: 'test://template/7/data' });
      expect(JSON.stringify(contents)).toContain('Data for ID: 7');
      await expect(client.readResource({ uri: 'test://none' })).rejects.toThrow('not found');
      const { completion } = await client.complete({
        ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
        argument: { name: 'arg1', value: 'par' },
      });
      expect(completion.values).toEqual(['paris', 'park', 'party']);
    },
  ],
  [
    'progress of several calls at once, each to its own',
    async ({ callTool }) => {
      const markers = ['one', 'two', 'three'];
      await Promise.all(
        markers.map(async (marker) => {
          const seen: Progress[] = [];
          const args = { count: 20, gapMs: 2, marker };
          expect(await callTool('progress', args, { onprogress: (progress: Progress) => seen.push(progress) })).toBe(
            marker,
          );
          expect(seen.map(({ message }) => message)).toEqual(Array(20).fill(marker));
          expect(seen.map(({ progress }) => progress)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
        }),
      );
    },
  ],
  [
    'logging, of the calls that ask for it, at their level and above',
    async ({ callTool, notifications }) => {
      const logged = () => notifications.items.filter(named('notifications/message'));
      const before = logged().length;
      await callTool('logs', { count: 5, level: 'error' });
      const _meta = { [metaKeys.logLevel]: 'warning' };
      await callTool('logs', { count: 5, level: 'info' }, { _meta });
      await callTool('logs', { count: 5, level: 'error' }, { _meta });
      await waitFor(() => logged().length >= before + 5, { what: 'five log messages' });
      expect(logged().slice(before)).toHaveLength(5);
      expect(new Set(logged().map(({ params }) => params?.['level']))).toEqual(new Set(['error']));
    },
  ],
  [
    'sampling, elicitation and roots in the middle of a call',
    async ({ callTool, questions }) => {
      expect(await callTool('test_input_required_result_multiple_inputs')).toBe(`${answers.sample} ada with 1 roots`);
      for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list']) {
        await questions.next(named(method));
      }
    },
  ],
  [
    '[R9.09] [R4.07] ten rounds of input, each with the state of the one before',
    async ({ callTool }) => {
      expect(await callTool('rounds', { count: 9 })).toBe('1,2,3,4,5,6,7,8,9');
    },
  ],
  [
    '[R4.08] input without a state, also for a prompt',
    async ({ client, callTool }) => {
      expect(await callTool('test_input_required_result_elicitation')).toBe('Hello, ada!');
      const { messages } = await client.getPrompt({ name: 'test_input_required_result_prompt' });
      expect(JSON.stringify(messages)).toContain('In this context: tests');
    },
  ],
];

/** Features in which one request changes a process and another one notices. */
export const processFeatures: readonly ModernFeature[] = [
  [
    '[R9.03] [R5.01] subscriptions',
    async ({ client, callTool, notifications }) => {
      const uri = 'test://watched-resource';
      const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
      expect(subscription.honoredFilter).toEqual({ toolsListChanged: true, resourceSubscriptions: [uri] });
      const added = await callTool('change_list', { what: 'tools' });
      await notifications.next(named('notifications/tools/list_changed'));
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain(added);
      await callTool('update_resource', { uri });
      const updated = await notifications.next(named('notifications/resources/updated'));
      expect(updated.params?.['uri']).toBe(uri);
      await subscription.close();
    },
  ],
  [
    '[R9.07] cancellation',
    async ({ callTool, notifications }) => {
      const controller = new AbortController();
      const key = `cancel-${Math.random()}`;
      const _meta = { [metaKeys.logLevel]: 'debug' };
      const call = callTool('wait_for_cancel', { key }, { signal: controller.signal, _meta });
      call.catch(() => undefined);
      await notifications.next(({ params }) => params?.['data'] === `waiting ${key}`);
      controller.abort('not wanted any more');
      await expect(call).rejects.toThrow();
      await waitFor(async () => (await callTool('cancellations')).includes(key), {
        what: 'the cancellation to reach the server',
      });
    },
  ],
];
