import type { RunningTask } from '../host.ts';

/** A running task in the list of the page. */
export interface TaskView {
  /** Its short name. */
  readonly task: string;
  readonly server: string;
  readonly tool?: string | undefined;
  readonly user?: string | undefined;
  readonly status: string;
  readonly ageMs: number;
  /** The instance that runs the call; undefined if it is this one. */
  readonly instance?: string | undefined;
}

/** The running tasks of this instance, and of others as far as they have reported them. */
export interface TaskViews {
  readonly total: number;
  readonly shown: readonly TaskView[];
}

/** How many tasks an instance reports, and how many the page shows (P8). */
export const maxReportedTasks = 20;
const maxShown = 100;

/** A running task as the page shows it. */
export const showTask = ({ name, server, tool, user, status, createdAt }: RunningTask): TaskView => ({
  task: name,
  server,
  tool,
  user,
  status,
  ageMs: Math.max(0, Date.now() - createdAt),
});

/** An instance, and what it reports of its running tasks. */
interface ReportingInstance {
  readonly name: string;
  readonly isThis: boolean;
  readonly ageMs: number;
  readonly tasks?: InstanceTasks | undefined;
}

/** The running tasks of all known instances, newest first. A task that has just moved is listed once. */
export function showTasks(own: readonly RunningTask[], instances: readonly ReportingInstance[]): TaskViews {
  const names = new Set(own.map(({ name }) => name));
  const elsewhere = instances
    .filter(({ isThis }) => !isThis)
    .flatMap(({ name: instance, tasks, ageMs: sinceMs }) =>
      (tasks?.newest ?? []).map((task) => ({ ...task, ageMs: task.ageMs + sinceMs, instance })),
    )
    .filter(({ task }) => !names.has(task));
  const shown = [...own.slice(0, maxShown).map(showTask), ...elsewhere].sort((a, b) => a.ageMs - b.ageMs);
  const reported = instances.filter(({ isThis }) => !isThis).map(({ tasks }) => tasks?.total ?? 0);
  return { total: own.length + reported.reduce((sum, count) => sum + count, 0), shown: shown.slice(0, maxShown) };
}

/** Reads the tasks that an instance reports. What is not understood is left out. */
export function readTasks(value: unknown): InstanceTasks | undefined {
  const { total, newest } = (value ?? {}) as Partial<InstanceTasks>;
  if (typeof total !== 'number' || !Array.isArray(newest)) return undefined;
  return { total, newest: newest.slice(0, maxReportedTasks).filter(isTask) };
}

/** What an instance reports of its running tasks. */
export interface InstanceTasks {
  readonly total: number;
  readonly newest: readonly TaskView[];
}

const isOptionalText = (value: unknown): boolean => value === undefined || typeof value === 'string';

function isTask(value: Partial<TaskView> | null): value is TaskView {
  const { task, server, status, ageMs, tool, user } = value ?? {};
  const areTexts = [task, server, status].every((text) => typeof text === 'string');
  return areTexts && typeof ageMs === 'number' && isOptionalText(tool) && isOptionalText(user);
}
