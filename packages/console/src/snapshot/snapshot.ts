// Snapshot: the state of the gateway that the page shows.

import type { StoreState } from '../host.ts';
import type { RecentCalls } from '../record/calls/call-rates.ts';
import type { UsualNumbers } from '../record/calls/history.ts';
import type { FailingTool, ToolView } from '../record/calls/tool-counts.ts';
import type { RecentRefusals } from '../record/incidents/refusals.ts';
import type { RecentResumes } from '../record/incidents/resumes.ts';
import type { Incidents } from '../record/incidents/server-incidents.ts';
import type { StderrLine } from '../record/stderr-lines.ts';
import type { StoreSpeed } from '../record/traffic.ts';
import type { SessionViews } from '../sessions/session-list.ts';
import type { SessionUser } from '../sessions/session-users.ts';
import type { TaskViews } from '../sessions/task-view.ts';
import type { InstanceSummary, InstanceView } from './known-instances.ts';
import type { ServerCondition } from './server-condition.ts';

/** The state of the gateway, sent to each page every second. */
export interface Snapshot {
  readonly instance: InstanceSummary &
    RecentCalls & {
      /** True if so many calls fail that a person should look. */
      readonly isFailing: boolean;
      readonly maxSessions: number;
      /** The sessions whose client cannot resume its only connection: WebSocket and HTTP+SSE. */
      readonly oneStream: number;
      /** Calls in flight. */
      readonly inFlight: number;
      /** The memory of the gateway itself. */
      readonly memoryBytes: number;
      /** The memory of all processes of servers, as far as measured. */
      readonly childBytes: number;
      readonly upMs: number;
      readonly usual: UsualNumbers;
      readonly refusals: RecentRefusals;
      readonly resumes: ResumesView;
      readonly store: StoreState & StoreSpeed;
    };
  readonly servers: readonly ServerView[];
  readonly sessions: SessionViews;
  readonly tasks: TaskViews;
  readonly instances: readonly InstanceView[];
}

/** The resumed streams, with the name and version of the last client, and its user, as far as known. */
export interface ResumesView extends RecentResumes {
  readonly client?: string | undefined;
  readonly user?: string | undefined;
}

/** One server. */
export interface ServerView {
  readonly name: string;
  readonly transport: string;
  /** The package that contains the server, with its version. */
  readonly package?: string | undefined;
  readonly era: string;
  readonly health: ServerHealthView;
  readonly condition: ServerCondition;
  readonly sessions: number;
  readonly streams: number;
  /** Calls in flight. */
  readonly inFlight: number;
  readonly recent: RecentCalls;
  /** True if so many calls fail that a person should look. */
  readonly isFailing: boolean;
  /** The processes that use the most memory. */
  readonly children: readonly ChildView[];
  readonly childCount: number;
  readonly childBytes: number;
  readonly restarts: number;
  /** How often a process or connection was lost in the last five minutes, and why the last one was. */
  readonly exits: Incidents['exits'];
  readonly lastExit: Incidents['lastExit'];
  /** The last lines on stderr before that. */
  readonly lastWords: readonly string[];
  /** Whose sessions the server has: the users and clients with the most sessions first. */
  readonly users: readonly SessionUser[];
  /** Whose sessions the server has on other instances. */
  readonly elsewhere: readonly {
    readonly instance: string;
    readonly sessions: number;
    readonly users: readonly SessionUser[];
  }[];
  readonly failingTool: FailingTool | undefined;
  /** The calls by tool: those that fail or are slow first. */
  readonly tools: { readonly shown: readonly ToolView[]; readonly total: number };
  readonly stderr: readonly StderrLine[];
  /** The last lines on stdout that are not messages. */
  readonly noise: Incidents['noiseLines'];
}

/** The health of a server. */
export interface ServerHealthView {
  readonly state: 'up' | 'down' | 'unknown';
  /** Why the server does not work, as exactly as the gateway knows, and what may help. */
  readonly why?: string | undefined;
  readonly help?: string | undefined;
  /** The last lines that the server wrote before it failed, with likely credentials redacted. */
  readonly output?: readonly string[] | undefined;
  /** The time of the latest outcome, in milliseconds since 1970. */
  readonly at?: number | undefined;
}

/** One process of a server. */
export interface ChildView {
  readonly pid: number;
  readonly memoryBytes: number | undefined;
  readonly restarts: number;
  /** The session that has the process; undefined if several sessions or all clients share it. */
  readonly session: string | undefined;
  /** The number of sessions that share the process, or 1 if all clients share it. */
  readonly sharedBy: number;
  readonly upMs: number;
}

/** The maximum number of listed processes (P8). */
const maxChildrenShown = 5;

/** Returns the processes that use the most memory. */
export const showChildren = (children: readonly ChildView[]): readonly ChildView[] =>
  [...children].sort((a, b) => (b.memoryBytes ?? 0) - (a.memoryBytes ?? 0)).slice(0, maxChildrenShown);
