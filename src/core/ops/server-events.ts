import type { BackendEnd } from '../backend/backend.ts';
import type { WebTransport } from '../backend/detect-transport.ts';
import type { NoTokenReason } from '../backend/upstream-tokens.ts';
import type { Reason } from '../protocol/faults.ts';
import type { Principal } from '../protocol/principal.ts';
import type { Era } from '../protocol/revisions.ts';

/** What has become of a call that the gateway has made a task of. */
export interface TaskEvent {
  readonly server: string;
  readonly what: 'created' | 'completed' | 'failed' | 'cancelled';
  readonly tool: string | undefined;
  readonly principal: Principal;
  /** The time since the task was made. */
  readonly durationMs: number;
  /** Why the task has failed, if the gateway says so. */
  readonly reason: Reason | undefined;
}

/** What a policy service is asked about. */
export type PolicyPhase = 'request' | 'result';

/** What a policy service decides. */
export type PolicyDecision = 'allow' | 'change' | 'deny' | 'ask' | 'failed';

/** Why the answer of a policy service cannot be used. The detail is for the operator. */
export interface PolicyFailure {
  readonly cause: 'unreachable' | 'slow' | 'too_large' | 'status' | 'unusable';
  readonly detail: string;
}

/** An event of a configured server outside of sessions: of its processes, its connections and its configuration. */
export type ServerEvent = Readonly<
  /** A line of the server's stderr, truncated, escaped and rate-limited. */
  | { type: 'server-stderr'; server: string; line: string; pid: number | undefined }
  /**
   * A remote server did not accept a message. `dropped` counts all notifications and responses that were lost in this
   * way.
   */
  | { type: 'server-post-failed'; server: string; detail: string; dropped: number }
  /** The gateway has detected the transport of an http(s):// server. */
  | { type: 'transport-found'; server: string; transport: WebTransport }
  /** The gateway has got a token for a server, or could not get one. The detail is for the operator. */
  | { type: 'upstream-token'; server: string; outcome: 'issued' }
  | { type: 'upstream-token'; server: string; outcome: NoTokenReason; detail: string }
  /** The policy service was asked about a request or a result. `failed`: its answer cannot be used. */
  | { type: 'policy-asked'; server: string; phase: PolicyPhase; decision: PolicyDecision; durationMs: number }
  | ({ type: 'policy-failed'; server: string; phase: PolicyPhase } & PolicyFailure)
  /** Tools of a modern http(s):// server are hidden, because their x-mcp-header annotations are invalid. */
  | { type: 'tools-hidden'; server: string; names: readonly string[] }
  /** A spare process ended before a session used it. */
  | { type: 'spare-ended'; server: string; end: BackendEnd }
  /** A message or line of a spare process was dropped, because the process had written too much before its use. */
  | { type: 'spare-output-dropped'; server: string }
  /** A message of a process was dropped, because several sessions use the process and none can be known to be meant. */
  | { type: 'shared-output-dropped'; server: string }
  /**
   * A single server answered the startup ping. The era is given if the answer shows it. `wasSlow` is true after
   * `server-slow`.
   */
  | { type: 'server-answered'; server: string; era?: Era | undefined; wasSlow?: boolean }
  /** A single server has not answered the startup ping yet, and still may. */
  | { type: 'server-slow'; server: string; detail: string }
  /** A single server has not answered the startup ping within the limit for its start. `output` is from the time before the first client. */
  | { type: 'server-silent'; server: string; detail: string; help: string; output: readonly string[] }
  /** A kept process of a server has not answered `ping`. Reported once for each server. */
  | { type: 'ping-unknown'; server: string }
  /** A second process of a server has not started while one runs. The sessions of a user share one. Reported once. */
  | { type: 'only-process'; server: string }
  /** The package of a server is being installed, was installed, or could not be. */
  | {
      type: 'package';
      server: string;
      package: string;
      state: 'installing' | 'installed' | 'failed';
      detail: string;
    }
  /** The command of a server does not exist. Its sessions will fail. */
  | { type: 'command-not-found'; server: string; detail: string }
  /** A server of a view is missing in an answer: it is not there, or was silent for too long. */
  | { type: 'view-server-missing'; server: string; member: string; reason: 'down' | 'silent' }
  /** A view leaves out tools or prompts, or has names of tools that model APIs refuse. Each name is reported once. */
  | { type: 'view-names'; server: string; leftOut: readonly string[]; refused: readonly string[] }
  /** A server of a view has started in one session. */
  | { type: 'view-server-ready'; server: string; member: string }
  /** A server of a view has not started, or has ended by itself, in one session. */
  | { type: 'view-server-down'; server: string; member: string; end: BackendEnd; isAtStart: boolean }
  /** A server of a view ended so often in one session that it is not started again for a while. */
  | { type: 'view-crash-loop'; server: string; member: string; pauseMs: number }
  /** The gateway has made a task of a call to the server, or such a task has ended. */
  | ({ type: 'task' } & TaskEvent)
  /** A tool has another definition than in an earlier list. `members` are those that differ. */
  | { type: 'tool-changed'; server: string; tool: string; members: readonly string[] }
  /** A server was removed from the configuration. What is kept about it can go. */
  | { type: 'server-removed'; server: string }
  /** The configuration was read again, and these servers differ. */
  | { type: 'configuration-reloaded'; added: readonly string[]; changed: readonly string[]; removed: readonly string[] }
  /** The changed configuration cannot be used. The previous one stays in use. */
  | { type: 'configuration-refused'; detail: string }
>;
