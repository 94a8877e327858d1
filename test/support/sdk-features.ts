import { expect } from 'vitest';
import { answers, elicitationSince, type Progress, type Received, type SdkClient } from './sdk-clients.ts';
import { createInbox, waitFor } from './wait-for.ts';

/**
 * A feature and the test of it, on one session that all features share; the revision that brought it, if not the first,
 * and the last that has it, if not the newest.
 */
export type Feature = readonly [
  name: string,
  run: (client: SdkClient) => Promise<void>,
  since?: string,
  until?: string,
];

/** The features of a revision. Revisions are dates, and compare as such. */
export const featuresAt = (features: readonly Feature[], revision: string) =>
  features
    .filter(([, , since = '', until = revision]) => since <= revision && revision <= until)
    .map(([name, run]) => [name, run] as const);

/** Without a session, a server can only ask a client during the client's own requests, and pings nobody. */
const lastOfSessions = '2025-11-25';

const named = (method: string) => (received: Received) => received.method === method;
const logged = (client: SdkClient) => client.notifications.items.filter(named('notifications/message'));
const countTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

/** Calls a tool and collects its progress until the result. */
async function callWithProgress(client: SdkClient, name: string, args: Record<string, unknown>) {
  const seen: Progress[] = [];
  const text = await client.callTool(name, args, { onProgress: (progress) => seen.push(progress) });
  return { text, steps: seen.map(({ progress }) => progress), seen };
}

/**
 * What our own fixture has a tool for, and its modern sibling too: with a client of sessions, by way of a translation.
 */
export const featuresOfModernFixture: readonly Feature[] = [
  [
    'tools',
    async (client) => {
      expect(await client.listTools()).toContain('echo');
      expect(await client.callTool('echo', { text: 'täst 🌍 \u2028' })).toBe('täst 🌍 \u2028');
      await expect(client.callTool('test_error_handling')).rejects.toThrow('intentionally');
      await expect(client.callTool('no_such_tool')).rejects.toThrow('Unknown tool');
    },
  ],
  [
    'prompts and resources',
    async (client) => {
      expect(await client.listPrompts()).toContain('test_prompt_with_arguments');
      const prompt = await client.getPrompt('test_prompt_with_arguments', { arg1: 'a', arg2: 'b' });
      expect(prompt).toBe("Prompt with arguments: arg1='a', arg2='b'");
      expect(await client.listResources()).toContain('test://static-text');
      expect(await client.readResource('test://template/7/data')).toContain('Data for ID: 7');
      await expect(client.readResource('test://none')).rejects.toThrow('not found');
    },
  ],
  [
    'progress, in order and complete, with and without time between',
    async (client) => {
      for (const gapMs of [0, 2]) {
        const { text, steps } = await callWithProgress(client, 'progress', { count: 20, gapMs, marker: 'm' });
        expect(text).toBe('m');
        expect(steps).toEqual(countTo(20));
      }
    },
  ],
  [
    'progress of two calls at once, each to its own',
    async (client) => {
      const calls = ['one', 'two'].map((marker) =>
        callWithProgress(client, 'progress', { count: 20, gapMs: 2, marker }),
      );
      const [one, two] = await Promise.all(calls);
      expect(one?.seen.map(({ message }) => message)).toEqual(Array(20).fill('one'));
      expect(two?.seen.map(({ message }) => message)).toEqual(Array(20).fill('two'));
    },
  ],
  [
    '[R3.09] logging, in order and by level',
    async (client) => {
      const before = logged(client).length;
      await client.setLoggingLevel('warning');
      await client.callTool('logs', { count: 5, level: 'info' });
      await client.callTool('logs', { count: 5, level: 'error' });
      await waitFor(() => logged(client).length >= before + 5, { what: 'five log messages' });
      const params = logged(client).slice(before);
      expect(params.map(({ params }) => params)).toEqual(
        countTo(5).map((step) => ({ level: 'error', logger: 'fixture', data: { step } })),
      );
    },
  ],
  [
    'sampling',
    async (client) => {
      expect(await client.callTool('test_sampling', { prompt: 'Say it' })).toBe(`LLM response: ${answers.sample}`);
      const question = await client.questions.next(named('sampling/createMessage'));
      expect(question.params?.['messages']).toEqual([{ role: 'user', content: { type: 'text', text: 'Say it' } }]);
    },
  ],
  [
    'elicitation',
    async (client) => {
      const text = await client.callTool('test_elicitation', { message: 'Who are you?' });
      expect(text).toContain(JSON.stringify(answers.elicited));
      const question = await client.questions.next(named('elicitation/create'));
      expect(question.params?.['message']).toBe('Who are you?');
    },
    elicitationSince,
  ],
  [
    'roots',
    async (client) => {
      expect(JSON.parse(await client.callTool('roots'))).toEqual(answers.roots);
    },
  ],
  [
    'resource subscription',
    async (client) => {
      const uri = 'test://watched-resource';
      const updates = () => client.notifications.items.filter(named('notifications/resources/updated'));
      const version = async () => Number((await client.readResource(uri)).replace('version ', ''));
      const before = await version();
      await client.subscribeResource(uri);
      expect(await client.callTool('update_resource', { uri })).toBe('told');
      const updated = await client.notifications.next(named('notifications/resources/updated'));
      expect(updated.params).toMatchObject({ uri });
      expect(await version()).toBe(before + 1);
      await client.unsubscribeResource(uri);
      const told = updates().length;
      await client.callTool('update_resource', { uri });
      // A later message has arrived, so this one would have been reported by now.
      await client.callTool('change_list', { what: 'tools' });
      await client.notifications.next(named('notifications/tools/list_changed'));
      expect(updates()).toHaveLength(told);
    },
  ],
  [
    'completion',
    async (client) => {
      const argument = { name: 'arg1', value: 'par' };
      expect(await client.completePrompt('test_prompt_with_arguments', argument)).toEqual(['paris', 'park', 'party']);
    },
  ],
  [
    'cancellation',
    async (client) => {
      const key = `cancel-${Math.random()}`;
      const { promise, cancel } = cancellable((signal) => client.callTool('wait_for_cancel', { key }, { signal }));
      await client.notifications.next(({ params }) => params?.['data'] === `waiting ${key}`);
      cancel();
      await expect(promise).rejects.toThrow();
      await waitFor(async () => (await client.callTool('cancellations')).includes(key), {
        what: 'the cancellation to reach the server',
      });
    },
  ],
  [
    'list changes, during a call and while idle',
    async (client) => {
      const lists = [
        ['tools', () => client.listTools()],
        ['prompts', () => client.listPrompts()],
        ['resources', () => client.listResources()],
      ] as const;
      for (const [what, list] of lists) {
        const added = await client.callTool('change_list', { what });
        await client.notifications.next(named(`notifications/${what}/list_changed`));
        expect((await list()).join()).toContain(added);
      }
      await client.callTool('later', { notification: { method: 'notifications/tools/list_changed' } });
      await client.notifications.next(named('notifications/tools/list_changed'));
    },
  ],
  ['ping', async (client) => void (await client.ping()), '', lastOfSessions],
];

/** The same, and what only a server with sessions can do: to speak first. */
export const featuresOfFixture: readonly Feature[] = [
  ...featuresOfModernFixture,
  [
    'requests of the server while no call is in flight',
    async (client) => {
      await client.callTool('later', { request: { method: 'roots/list' } });
      await client.questions.next(({ method }) => method === 'roots/list');
      const answered = await waitFor(async () => JSON.parse(await client.callTool('answers'))[0], {
        what: 'the answer',
      });
      expect(answered).toEqual({ roots: answers.roots });
    },
    '',
    lastOfSessions,
  ],
  [
    'ping of the server',
    async (client) => {
      expect(await client.callTool('ask_client', { method: 'ping' })).toBe('{}');
    },
  ],
];

/** The same for `@modelcontextprotocol/server-everything`, as far as it goes. */
export const featuresOfReference: readonly Feature[] = [
  [
    'tools',
    async (client) => {
      expect(await client.listTools()).toContain('echo');
      expect(await client.callTool('echo', { message: 'täst 🌍' })).toBe('Echo: täst 🌍');
    },
  ],
  [
    'prompts and resources',
    async (client) => {
      expect(await client.listPrompts()).toContain('simple-prompt');
      expect(await client.getPrompt('args-prompt', { city: 'Berlin' })).toContain('Berlin');
      expect(await client.readResource('demo://resource/dynamic/text/1')).toContain('1');
    },
  ],
  [
    'progress, in order and complete',
    async (client) => {
      const args = { duration: 0.2, steps: 10 };
      const { text, steps } = await callWithProgress(client, 'trigger-long-running-operation', args);
      expect(text).toContain('completed');
      expect(steps).toEqual(countTo(10));
    },
  ],
  [
    'logging',
    async (client) => {
      await client.setLoggingLevel('debug');
      // Starts, and sends the first message at once; then stops again.
      await client.callTool('toggle-simulated-logging');
      await client.notifications.next(({ params }) => /level[- ]message/.test(String(params?.['data'])));
      await client.callTool('toggle-simulated-logging');
    },
  ],
  [
    'sampling',
    async (client) => {
      expect(await client.callTool('trigger-sampling-request', { prompt: 'Say it' })).toContain(answers.sample);
      await client.questions.next(named('sampling/createMessage'));
    },
  ],
  [
    'elicitation',
    async (client) => {
      await client.callTool('trigger-elicitation-request');
      await client.questions.next(named('elicitation/create'));
    },
    elicitationSince,
  ],
  [
    'roots, which this server asks for while no call is in flight',
    async (client) => {
      await client.questions.next(named('roots/list'));
      expect(await client.callTool('get-roots-list')).toContain(answers.roots[0].uri);
    },
  ],
  [
    'resource subscription',
    async (client) => {
      const uri = 'demo://resource/dynamic/text/1';
      await client.subscribeResource(uri);
      // Starts, and reports the first update at once; then stops again.
      await client.callTool('toggle-subscriber-updates');
      const updated = await client.notifications.next(named('notifications/resources/updated'));
      expect(updated.params).toMatchObject({ uri });
      await client.callTool('toggle-subscriber-updates');
      await client.unsubscribeResource(uri);
    },
  ],
  [
    'completion',
    async (client) => {
      const argument = { name: 'department', value: 'E' };
      expect(await client.completePrompt('completable-prompt', argument)).toEqual(['Engineering']);
    },
  ],
  [
    'cancellation',
    async (client) => {
      const progress = createInbox<Progress>();
      const args = { duration: 30, steps: 600 };
      const { promise, cancel } = cancellable((signal) =>
        client.callTool('trigger-long-running-operation', args, { signal, onProgress: progress.push }),
      );
      await progress.next();
      cancel();
      await expect(promise).rejects.toThrow();
      // The server goes on reporting progress of the cancelled call: it must hurt no other.
      expect(await client.callTool('echo', { message: 'still here' })).toBe('Echo: still here');
    },
  ],
  [
    'list changes',
    async (client) => {
      const data = `data:text/plain,${'x'.repeat(100)}`;
      const args = { name: 'added.gz', data, outputType: 'resourceLink' };
      await client.callTool('gzip-file-as-resource', args);
      await client.notifications.next(named('notifications/resources/list_changed'));
      expect((await client.listResources()).join()).toContain('added.gz');
    },
  ],
  ['ping', async (client) => void (await client.ping()), '', lastOfSessions],
];

function cancellable<T>(start: (signal: AbortSignal) => Promise<T>): { promise: Promise<T>; cancel: () => void } {
  const controller = new AbortController();
  const promise = start(controller.signal);
  // It is awaited only after `cancel`; that it rejects before is no unhandled rejection.
  promise.catch(() => undefined);
  return { promise, cancel: () => controller.abort('not wanted any more') };
}
