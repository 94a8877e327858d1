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

/** What is told of a server's processes outside of sessions. */
export interface ServerListeners {
  /** Makes what opens its backends tell of them. */
  countBackend?(open: OpenBackend): OpenBackend;
  /** A process of the server runs, or a connection to it stands. */
  onStarted?(): void;
  /** A line of its stderr, cut, escaped and rate-limited. */
  onStderr?(line: string, pid: number | undefined): void;
  /** A remote server did not take a message: one sentence, and how many notifications and answers were lost so in all. */
  onPostFailed?(detail: string, dropped: number): void;
  /** An http(s):// server whose transport was to be found out has answered by this one. */
  onTransport?(transport: WebTransport): void;
  /** Tools of an http(s):// server of the modern era are not offered: what they want mirrored breaks the rules. */
  onToolsHidden?(names: readonly string[]): void;
  /** A spare ended before anybody used it. */
  onSpareEnd?(end: BackendEnd): void;
  /** It answered the first question, which the gateway asks an only server at its start; in this era, if that tells. */
  onAnswered?(era?: Era): void;
  /** It has not answered that, or not yet. */
  onSilent?(why: ServerUnusableError): void;
}

/**
 * Logs what is told of one server, its stderr as a part of its own, and notes what it says of its health.
 * @param processes whose each process is, once its session has begun
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
        { server, reason, detail, lastOutput: shown(lastOutput), help: helpOfEnd(end) },
        'spare server ended',
      );
      health.ended(server, end, { isAtStart: true });
    },
    onAnswered(era) {
      health.started(server);
      if (era !== undefined) health.eraSeen(server, era);
    },
    onSilent({ message: detail, output, help }) {
      logger.warn({ server, detail, lastOutput: shown(output), help: withCheck(help) }, 'server does not answer');
      health.failed(server, serverFailure('no_answer'));
    },
  };
}

/** What a server wrote that no client has spoken to: such may be shown without `debug` (docs/decisions/0006). */
const shown = (lines: readonly string[] = []): readonly string[] | undefined => (lines.length > 0 ? lines : undefined);
