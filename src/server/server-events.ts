import type { BackendEnd } from '../backend/backend.ts';
import type { WebTransport } from '../backend/detect-transport.ts';
import type { Era } from '../protocol/revisions.ts';

/** An event of a configured server outside of sessions: of its processes, its connections and its configuration. */
export type ServerEvent =
  /** A line of the server's stderr, truncated, escaped and rate-limited. */
  | {
      readonly type: 'server-stderr';
      readonly server: string;
      readonly line: string;
      readonly pid: number | undefined;
    }
  /**
   * A remote server did not accept a message. `dropped` counts all notifications and responses that were lost in this
   * way.
   */
  | { readonly type: 'server-post-failed'; readonly server: string; readonly detail: string; readonly dropped: number }
  /** The gateway has detected the transport of an http(s):// server. */
  | { readonly type: 'transport-found'; readonly server: string; readonly transport: WebTransport }
  /** Tools of a modern http(s):// server are hidden, because their x-mcp-header annotations are invalid. */
  | { readonly type: 'tools-hidden'; readonly server: string; readonly names: readonly string[] }
  /** A spare process ended before a session used it. */
  | { readonly type: 'spare-ended'; readonly server: string; readonly end: BackendEnd }
  /** A message or line of a spare process was dropped, because the process had written too much before its use. */
  | { readonly type: 'spare-output-dropped'; readonly server: string }
  /** A single server answered the startup ping; the era is given if the answer shows it. */
  | { readonly type: 'server-answered'; readonly server: string; readonly era?: Era | undefined }
  /** A single server has not answered the startup ping yet. `output` is from the time before the first client. */
  | {
      readonly type: 'server-silent';
      readonly server: string;
      readonly detail: string;
      readonly help: string;
      readonly output: readonly string[];
    }
  /** The command of a server does not exist. Its sessions will fail. */
  | { readonly type: 'command-not-found'; readonly server: string; readonly detail: string }
  /** A session has found that the server speaks this era. */
  | { readonly type: 'era-seen'; readonly server: string; readonly era: Era }
  /** A server was removed from the configuration. What is kept about it can go. */
  | { readonly type: 'server-removed'; readonly server: string };
