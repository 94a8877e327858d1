import { setTimeout as delay } from 'node:timers/promises';
import { callModern, type ModernOptions, metaKeys, openModern, postModern } from './modern-client.ts';

/** The name under which clients and servers declare tasks. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';

const declared = { elicitation: {}, extensions: { [tasksExtension]: {} } };

/** A task as its client sees it. */
export interface TaskView {
  readonly taskId: string;
  readonly status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';
  readonly statusMessage?: string;
  readonly ttlMs: number;
  readonly result?: { readonly content: readonly { readonly text: string }[]; readonly isError?: boolean };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { readonly reason?: string } };
  readonly inputRequests?: Readonly<Record<string, { readonly params: { readonly message: string } }>>;
}

const withTasks = (options: ModernOptions = {}): ModernOptions => ({
  ...options,
  meta: { ...options.meta, [metaKeys.clientCapabilities]: declared },
});

/** Listens to what happens to tasks. Resolves with the stream. */
export const listenToTasks = (url: string, taskIds: readonly string[], options?: ModernOptions) =>
  openModern(url, 'subscriptions/listen', { notifications: { taskIds } }, { ...withTasks(options), id: 'l' });

/** Calls a tool as a client that takes tasks. Resolves with the result: that of the tool, or a task. */
export async function callForTask(url: string, name: string, args: object = {}, options?: ModernOptions) {
  const { messages } = await callModern(url, name, args, withTasks(options));
  const last = messages.at(-1);
  if (last?.result === undefined) throw new Error(`${name}: ${JSON.stringify(last)}`);
  return last.result as { readonly resultType: string } & TaskView & {
      readonly content?: readonly { readonly text: string }[];
    };
}

/** Sends a request about a task. Resolves with the whole answer. */
export const askTask = (
  url: string,
  method: string,
  taskId: string,
  params: object = {},
  options: ModernOptions = {},
) =>
  postModern(
    url,
    method,
    { taskId, ...params },
    { ...withTasks(options), headers: { 'Mcp-Name': taskId, ...options.headers } },
  );

export async function getTask(url: string, taskId: string, options?: ModernOptions): Promise<TaskView> {
  const { json } = await askTask(url, 'tasks/get', taskId, {}, options);
  if (json.result === undefined) throw new Error(`tasks/get: ${JSON.stringify(json.error)}`);
  return json.result;
}

export const updateTask = (url: string, taskId: string, inputResponses: object, options?: ModernOptions) =>
  askTask(url, 'tasks/update', taskId, { inputResponses }, options);

export const cancelTask = (url: string, taskId: string, options?: ModernOptions) =>
  askTask(url, 'tasks/cancel', taskId, {}, options);

/** Asks for a task until it is in one of these states. */
export async function awaitTask(
  url: () => string,
  taskId: string,
  states: readonly TaskView['status'][] = ['completed', 'failed', 'cancelled'],
): Promise<TaskView> {
  for (;;) {
    const task = await getTask(url(), taskId);
    if (states.includes(task.status)) return task;
    await delay(50);
  }
}
