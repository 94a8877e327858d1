import type { ServerEvent } from '../../server/server-events.ts';
import type { EventOf } from '../../util/telemetry/emit.ts';
import type { GatewaySink } from '../gateway-events.ts';
import { helpOfEnd, withCheck } from '../health/start-help.ts';
import type { Log } from './log.ts';
import type { SessionByProcess } from './session-by-process.ts';

const invalidAnnotations =
  'The x-mcp-header annotations of these tools violate the MCP specification. Correct them in the server.';

const leftOutOfView =
  "Each of these names leads to another server of the view. Give every server a prefix (remove 'unprefixed'), or rename the tool with 'tools'.";

const refusedByModels =
  "Model APIs accept 1 to 64 letters, digits, '_' and '-' as the name of a tool, and refuse a request with another name. Use a shorter server name or another 'separator', rename the tool with 'tools', or hide it with 'denyTools'.";

/**
 * Logs the events of servers outside of sessions. Lines of stderr have a log part of their own.
 * @param processes finds the session of a process
 */
export function createServerLog(
  { server: logger, stderr }: Pick<Log, 'server' | 'stderr'>,
  processes: SessionByProcess,
): GatewaySink {
  return (event) => {
    switch (event.type) {
      case 'server-stderr': {
        const { server, line, pid } = event;
        const session = processes.sessionOf(pid);
        return stderr.debug({ server, session, pid, stderr: line }, 'server wrote to stderr');
      }
      case 'server-post-failed': {
        const { server, detail, dropped } = event;
        return logger.debug({ server, detail, dropped }, 'the server did not accept a message');
      }
      case 'transport-found': {
        const { server, transport } = event;
        return logger.info({ server, transport }, 'detected the transport of the server');
      }
      case 'tools-hidden': {
        const { server, names } = event;
        const fields = { server, tools: names.length, detail: invalidAnnotations };
        logger.warn(fields, 'removed tools from the list of the server');
        return logger.debug({ server, names }, 'removed tools');
      }
      case 'spare-ended':
        return logger.warn(spareFields(event), 'spare server ended');
      case 'server-slow': {
        const { server, detail } = event;
        return logger.info({ server, detail }, 'the server has not answered yet');
      }
      case 'server-answered':
        if (event.wasSlow) logger.info({ server: event.server }, 'the server answers');
        return;
      case 'server-silent': {
        const { server, detail, output, help } = event;
        const fields = { server, detail, lastOutput: omitEmpty(output), help: withCheck(help) };
        return logger.warn(fields, 'server does not answer');
      }
      case 'view-server-missing': {
        const { server, member, reason } = event;
        return logger.debug({ server, member, reason }, 'a server of the view is missing from an answer');
      }
      case 'view-names': {
        const { server, leftOut, refused } = event;
        if (leftOut.length > 0)
          logger.warn({ server, names: leftOut, detail: leftOutOfView }, 'the view leaves out names');
        if (refused.length > 0)
          logger.warn({ server, names: refused, detail: refusedByModels }, 'the view has names that models refuse');
        return;
      }
      case 'view-server-down': {
        const { server, member, end } = event;
        return logger.warn({ server, member, detail: end.detail }, 'a server of the view has ended');
      }
      case 'command-not-found': {
        const { server, detail } = event;
        return logger.warn({ server, detail }, 'cannot start the server; its sessions will fail');
      }
    }
  };
}

function spareFields({ server, end }: EventOf<ServerEvent, 'spare-ended'>): object {
  const { reason, detail, lastOutput } = end;
  return { server, reason, detail, lastOutput: omitEmpty(lastOutput), help: helpOfEnd(end) };
}

/** Output of a process that no client has used may be logged without `debug` (docs/decisions/0006). */
const omitEmpty = (lines: readonly string[] = []): readonly string[] | undefined =>
  lines.length > 0 ? lines : undefined;
