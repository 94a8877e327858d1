import type { RequestId } from '../../core/protocol/faults.ts';
import { parseOwn } from '../../core/protocol/json.ts';

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
const prefix = 'tasks ';

/** Adds calls to the resume state of a backend. */
export const formatTaskResumeState = (saved: TaskResumeState): string => prefix + JSON.stringify(saved);

/** Reads what `formatTaskResumeState` has made; undefined for the state of a server without tasks. */
export const parseTaskResumeState = (text: string): TaskResumeState | undefined =>
  text.startsWith(prefix) ? (parseOwn(text.slice(prefix.length)) as TaskResumeState) : undefined;
