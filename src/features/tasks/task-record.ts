// src/features/tasks: calls that become tasks of the gateway, which their clients collect later, on any instance (SEP-2663).

import type { RequestId } from '../../core/protocol/faults.ts';
import { parseOwn } from '../../core/protocol/json.ts';
import type { Principal } from '../../core/protocol/principal.ts';

/** The states of a task. The last three are final. */
export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** What the store has about a task, beside the text of its result, error or questions. */
export interface TaskFacts {
  readonly status: TaskStatus;
  readonly statusMessage?: string | undefined;
  /** The instance that runs the call. */
  readonly owner: string;
  /** Who may see the task; see `TaskClient`. */
  readonly asker: string;
  /** The name of the server. */
  readonly server: string;
  /** The tool that was called. */
  readonly tool?: string | undefined;
  /** Who began the task, for audit lines and the status page. */
  readonly principal: Principal;
  /** By the system's clock, in milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** How long after its creation the task is kept, in milliseconds. */
  readonly ttlMs: number;
  /** Tells two ends of one task apart, of which only one counts; absent before the end. */
  readonly mark?: string;
  /** How often the task has found a new owner. */
  readonly moves?: number;
  /** Where another instance reads on, if the call does not depend on the instance that has begun it. */
  readonly point?: string | undefined;
  /** How many rounds of questions the task has had. */
  readonly rounds?: number;
  /** The questions of the server that wait for answers, or whose answers have not reached the server yet. */
  readonly round?: TaskRound | undefined;
  /** True if the request is in the store. */
  readonly isKept?: true | undefined;
  /** True if the call may be sent again once it is lost. */
  readonly mayRunAgain?: boolean;
  /** True once the call was sent again. It is not sent a third time. */
  readonly isRerun?: true;
}

/** One round of questions of a task. */
export interface TaskRound {
  /** The keys of all questions of the round: that for the client, and that of the server. */
  readonly keys: readonly (readonly [name: string, key: string])[];
  /** The state of the round, as JSON text. */
  readonly state?: string | undefined;
}

/** A task as it is stored: its facts, and the text that its state carries. */
export interface TaskRecord {
  readonly facts: TaskFacts;
  /** The JSON text of the result, of the error, or of the questions by their key; empty for none. */
  readonly text: Buffer;
}

/** The facts of a task that enters a state now. What its last state said does not hold any more. */
export function inStatus({ statusMessage: _, ...facts }: TaskFacts, status: TaskStatus): TaskFacts {
  return { ...facts, status, updatedAt: Date.now() };
}

/** How often a client should ask for the state of a task, in milliseconds. */
export const pollIntervalMs = 1_000;

const newline = 0x0a;
const nothing = Buffer.alloc(0);

/** Encodes a record as a line of JSON, followed by the unchanged text. */
export const formatTask = ({ facts, text }: TaskRecord): Buffer =>
  Buffer.concat([Buffer.from(`${JSON.stringify(facts)}\n`), text]);

/** Reads a record of the store. */
export function parseTask(stored: Buffer): TaskRecord {
  const end = stored.indexOf(newline);
  return { facts: parseOwn(stored.subarray(0, end)) as TaskFacts, text: stored.subarray(end + 1) };
}

/** The member that carries the text of a state. */
const textMember: Readonly<Partial<Record<TaskStatus, string>>> = {
  input_required: 'inputRequests',
  completed: 'result',
  failed: 'error',
};

/** The members of a task as its client sees it (SEP-2663, `DetailedTask`), as JSON text without braces. */
export function taskMembers(id: string, { facts, text }: TaskRecord): Buffer {
  const { status, statusMessage, createdAt, updatedAt, ttlMs } = facts;
  const members = {
    taskId: id,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs,
  };
  const head = JSON.stringify(members).slice(1, -1);
  const key = textMember[status];
  return key === undefined ? Buffer.from(head) : Buffer.concat([Buffer.from(`${head},"${key}":`), text]);
}

/**
 * The text of the response that carries a task.
 * @param idText the id of the request, as JSON text
 */
export const taskResponse = (idText: string, resultType: 'task' | 'complete', members: Buffer = nothing): Buffer =>
  Buffer.concat([
    Buffer.from(
      `{"jsonrpc":"2.0","id":${idText},"result":{"resultType":"${resultType}"${members.length > 0 ? ',' : ''}`,
    ),
    members,
    Buffer.from('}}'),
  ]);

/** What a resume state has of a call that runs as a task, so that another backend can ask for its result (2025-11-25). */
export interface SavedCall {
  readonly id: RequestId;
  readonly ownId?: RequestId | undefined;
  readonly taskId: string;
  readonly progressToken?: RequestId | undefined;
  /** How many messages of progress its user got. */
  readonly reports: number;
}

/** The resume state of a backend, and the calls that run as tasks of its server. */
interface TaskResumeState {
  readonly state: string;
  readonly calls: readonly SavedCall[];
}

/** A state begins with this, if it is that of a server with tasks. */
const resumeStatePrefix = 'tasks ';

/** Adds calls to the resume state of a backend. */
export const formatTaskResumeState = (saved: TaskResumeState): string => resumeStatePrefix + JSON.stringify(saved);

/** Reads what `formatTaskResumeState` has made; undefined for the state of a server without tasks. */
export const parseTaskResumeState = (text: string): TaskResumeState | undefined =>
  text.startsWith(resumeStatePrefix) ? (parseOwn(text.slice(resumeStatePrefix.length)) as TaskResumeState) : undefined;
