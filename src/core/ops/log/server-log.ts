import { BoundedMap } from '../../util/bounded-map.ts';
import type { EventOf } from '../../util/telemetry/emit.ts';
import type { GatewaySink } from '../gateway-events.ts';
import { helpOfEnd, withCheck } from '../health/start-help.ts';
import type { RepeatedHelp } from '../repeated-help.ts';
import type { ServerEvent } from '../server-events.ts';
import type { Log } from './log.ts';
import type { SessionByProcess } from './session-by-process.ts';

const invalidAnnotations =
  'The x-mcp-header annotations of these tools violate the MCP specification. Correct them in the server.';

const leftOutOfView =
  "Each of these names leads to another server of the view. Give every server a prefix (remove 'unprefixed'), or rename the tool with 'tools'.";

const pingUnknown =
  'A process of an earlier session must answer ping within 2 s before the next session gets it. After two unanswered pings in a row, each session of this server starts a new process. Make the server answer ping (MCP, basic/utilities/ping).';

const onlyProcess =
  'A second process of the server did not start while another one was running or ending. The server may hold a port, a lock or a database. So the sessions and modern clients of one user share a process, with its state, until it ends. Other users are refused while it runs, unless --share all lets them share it. To give each session its own process, configure the server so that it can run twice.';

const refusedByModels =
  "Model APIs accept 1 to 64 letters, digits, '_' and '-' as the name of a tool, and refuse a request with another name. Use a shorter server name or another 'separator', rename the tool with 'tools', or hide it with 'denyTools'.";

/**
 * Logs the events of servers outside of sessions. Lines of stderr have a log part of their own.
 * @param processes finds the session of a process
 * @param helps is shared by all logs
 */
export function createServerLog(
  { server: logger, stderr }: Pick<Log, 'server' | 'stderr'>,
  processes: SessionByProcess,
  helps: RepeatedHelp,
): GatewaySink {
  const outages = new ViewOutages(logger);
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
      case 'tool-changed': {
        const { server, tool, members } = event;
        return logger.warn({ server, tool, changed: members }, 'the definition of a tool has changed');
      }
      case 'spare-ended':
        return logger.warn(spareFields(event, helps), 'spare server ended');
      case 'server-slow': {
        const { server, detail } = event;
        return logger.info({ server, detail }, 'the server has not answered yet');
      }
      case 'server-answered':
        if (event.wasSlow) logger.info({ server: event.server }, 'the server answers');
        return;
      case 'server-silent': {
        const { server, detail, output, help } = event;
        const fields = { server, detail, lastOutput: omitEmpty(output), ...helps.of(server, withCheck(help)) };
        return logger.warn(fields, 'server does not answer');
      }
      case 'view-server-missing': {
        const { server, member, reason } = event;
        logger.debug({ server, member, reason }, 'a server of the view is missing from an answer');
        return outages.missing(server, member, reason);
      }
      case 'view-server-ready':
        return outages.ready(event.server, event.member);
      case 'ping-unknown': {
        const { server } = event;
        return logger.warn({ server, detail: pingUnknown }, 'the server does not answer ping');
      }
      case 'only-process': {
        const { server } = event;
        return logger.warn({ server, detail: onlyProcess }, 'only one process of the server can run');
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
        return outages.ended(server, member, end.detail);
      }
      case 'view-crash-loop': {
        const { server, member, pauseMs } = event;
        const detail = 'It exited repeatedly. The gateway waits before the next start.';
        return logger.warn({ server, member, pauseMs, detail }, 'a server of the view is in a crash loop');
      }
      case 'package': {
        const { server, package: name, state, detail } = event;
        const fields = { server, package: name, detail };
        if (state === 'failed') return logger.warn(fields, 'the package of the server could not be installed');
        return logger.info(fields, state === 'installed' ? 'installed a package' : 'installing a package');
      }
      case 'command-not-found': {
        const { server, detail } = event;
        return logger.warn({ server, detail }, 'cannot start the server; its sessions will fail');
      }
    }
  };
}

/** A server that was missing from no answer for this time is no longer away: its next absence is another outage. */
const outageMs = 60_000;

/** The limit for remembered outages (P8): one for each server of a view. */
const maxOutages = 1_000;

interface Outage {
  lastAt: number;
  /** True once the server has ended, or could not be started. */
  hasEnded: boolean;
  /** True once the log says that an answer lacks the server. */
  isReported: boolean;
}

/** Each outage of a server of a view is one warning, however many sessions and answers lack the server. */
class ViewOutages {
  readonly #logger: Log['server'];
  readonly #outages = new BoundedMap<string, Outage>(maxOutages);

  constructor(logger: Log['server']) {
    this.#logger = logger;
  }

  /** A server of a view has ended, or could not be started. */
  ended(server: string, member: string, detail: string): void {
    const outage = this.#outageOf(server, member);
    if (!outage.hasEnded) this.#logger.warn({ server, member, detail }, 'a server of the view has ended');
    outage.hasEnded = true;
  }

  /** An answer of the view lacks a server. */
  missing(server: string, member: string, reason: 'down' | 'silent'): void {
    const outage = this.#outageOf(server, member);
    if (outage.isReported) return;
    outage.isReported = true;
    const state =
      reason === 'silent' ? 'has not answered in time' : outage.hasEnded ? 'does not run' : 'is still starting';
    const help = `Clients are told when ${member} answers. If it needs more time, raise the timeout of the view.`;
    const detail = `${member} ${state}.${outage.hasEnded ? '' : ` ${help}`}`;
    this.#logger.warn({ server, member, detail }, 'the view answered without one of its servers');
  }

  /** A server of a view has started in a session. */
  ready(server: string, member: string): void {
    const outage = this.#outages.get(keyOf(server, member));
    if (outage === undefined) return;
    this.#outages.delete(keyOf(server, member));
    if (outage.isReported) this.#logger.info({ server, member }, 'a server of the view answers again');
  }

  #outageOf(server: string, member: string): Outage {
    const now = performance.now();
    const known = this.#outages.get(keyOf(server, member));
    if (known !== undefined && now - known.lastAt < outageMs) {
      known.lastAt = now;
      return known;
    }
    const outage = { lastAt: now, hasEnded: false, isReported: false };
    this.#outages.set(keyOf(server, member), outage);
    return outage;
  }
}

const keyOf = (server: string, member: string): string => `${server}\n${member}`;

function spareFields({ server, end }: EventOf<ServerEvent, 'spare-ended'>, helps: RepeatedHelp): object {
  const { reason, detail, lastOutput } = end;
  return { server, reason, detail, lastOutput: omitEmpty(lastOutput), ...helps.of(server, helpOfEnd(end)) };
}

/** Output of a process that no client has used may be logged without `debug` (docs/decisions/0042). */
const omitEmpty = (lines: readonly string[] = []): readonly string[] | undefined =>
  lines.length > 0 ? lines : undefined;
