import type { BackendEnd, OpenBackend } from '../../backend/backend.ts';
import type { WebTransport } from '../../backend/detect-transport.ts';
import type { ServerConfig } from '../../config/config.ts';
import { serverFailure } from '../../ops/health/server-failure.ts';
import type { ServerHealth } from '../../ops/health/server-health.ts';
import { helpOfEnd, withCheck } from '../../ops/health/start-help.ts';
import type { Log } from '../../ops/log/log.ts';
import type { SessionByProcess } from '../../ops/log/session-by-process.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { ServerUnusableError } from '../probes/probe-session.ts';

/** The listeners for events of a server's processes and connections outside sessions. */
export interface ServerListeners {
  /** Wraps the opener of backends, so that they are counted. */
  countBackend?(open: OpenBackend): OpenBackend;
  /** A process of the server runs, or a connection to it is open. */
  onStarted?(): void;
  /** A line of the server's stderr, truncated, escaped and rate-limited. */
  onStderr?(line: string, pid: number | undefined): void;
  /**
   * A remote server did not accept a message. `dropped` counts all notifications and responses that were lost in this
   * way.
   */
  onPostFailed?(detail: string, dropped: number): void;
  /** The gateway has detected the transport of an http(s):// server. */
  onTransport?(transport: WebTransport): void;
  /** Tools of a modern http(s):// server are hidden, because their x-mcp-header annotations are invalid. */
  onToolsHidden?(names: readonly string[]): void;
  /** A spare process ended before a session used it. */
  onSpareEnd?(end: BackendEnd): void;
  /** A single server answered the startup ping; the era is given if the answer shows it. */
  onAnswered?(era?: Era): void;
  /** A single server has not answered the startup ping yet. */
  onSilent?(why: ServerUnusableError): void;
}

/**
 * Creates listeners that log the events of one server and update its health. Lines of stderr have a log part of their
 * own.
 * @param processes finds the session of a process
 */
export function createServerListeners(
  { name: server }: Pick<ServerConfig, 'name'>,
  log: Log,
  processes: SessionByProcess,
  health: ServerHealth,
): ServerListeners {
  const logger = log.server;
  return {
    onStderr: (line, pid) =>
      log.stderr.debug({ server, session: processes.sessionOf(pid), pid, stderr: line }, 'server wrote to stderr'),
    onPostFailed: (detail, dropped) => logger.debug({ server, detail, dropped }, 'the server did not accept a message'),
    onTransport(transport) {
      logger.info({ server, transport }, 'detected the transport of the server');
      health.transportFound(server, transport);
    },
    onToolsHidden(names) {
      const detail =
        'The x-mcp-header annotations of these tools violate the MCP specification. Correct them in the server.';
      logger.warn({ server, tools: names.length, detail }, 'removed tools from the list of the server');
      logger.debug({ server, names }, 'removed tools');
    },
    onSpareEnd(end) {
      const { reason, detail, lastOutput } = end;
      logger.warn(
        { server, reason, detail, lastOutput: omitEmpty(lastOutput), help: helpOfEnd(end) },
        'spare server ended',
      );
      health.ended(server, end, { isAtStart: true });
    },
    onAnswered(era) {
      health.started(server);
      if (era !== undefined) health.eraSeen(server, era);
    },
    onSilent({ message: detail, output, help }) {
      logger.warn({ server, detail, lastOutput: omitEmpty(output), help: withCheck(help) }, 'server does not answer');
      health.failed(server, serverFailure('no_answer'));
    },
  };
}

/** Output of a process that no client has used may be logged without `debug` (docs/decisions/0006). */
const omitEmpty = (lines: readonly string[] = []): readonly string[] | undefined =>
  lines.length > 0 ? lines : undefined;
