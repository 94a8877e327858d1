import type { Logger } from 'pino';
import type { GatewayEvent } from '../gateway-events.ts';

/** How much of the first line is logged. */
const maxLoggedBytes = 200;

const advice = 'Configure the server to log to stderr: stdout is only for MCP messages.';

/** The settings of a stdout noise log. */
export interface StdoutNoiseLogOptions {
  readonly logger: Logger;
  /** The log is read in the terminal of the person who runs the gateway. */
  readonly isAtTerminal: boolean;
}

/**
 * Warns the operator, once for each server, that the server writes lines to stdout that are not MCP messages. Most such
 * lines are harmless, but a server that writes its answers in another form looks silent without this warning.
 *
 * The line may contain what a client sent (P12). A log that is kept shows the line only if the server wrote it before
 * it answered `initialize`: no client has sent anything before that.
 *
 * A second warning tells that output of a spare process was dropped.
 */
export class StdoutNoiseLog {
  readonly #options: StdoutNoiseLogOptions;
  readonly #warnedServers = new Set<string>();
  readonly #serversWithExcess = new Set<string>();

  constructor(options: StdoutNoiseLogOptions) {
    this.#options = options;
  }

  readonly receive = (event: GatewayEvent): void => {
    if (event.type === 'session-message-dropped' && event.reason === 'noise')
      this.#report(event.name.server, event.text, event.isAtStart);
    if (event.type === 'shared-message-dropped' && event.reason === 'noise')
      this.#report(event.server, event.text, false);
    if (event.type === 'spare-output-dropped') this.#reportExcess(event.server);
    if (event.type === 'server-removed') {
      this.#warnedServers.delete(event.server);
      this.#serversWithExcess.delete(event.server);
    }
  };

  #reportExcess(server: string): void {
    if (this.#serversWithExcess.has(server)) return;
    this.#serversWithExcess.add(server);
    this.#options.logger.warn(
      { server, help: advice },
      'a spare process of the server wrote a lot to stdout before its first use; the gateway drops the rest',
    );
  }

  #report(server: string, text: Buffer | undefined, isAtStart: boolean): void {
    if (this.#warnedServers.has(server)) return;
    this.#warnedServers.add(server);
    const { logger, isAtTerminal } = this.#options;
    const line = text?.subarray(0, maxLoggedBytes).toString() ?? '';
    const showsLine = isAtTerminal || isAtStart;
    const fields = showsLine ? { line, help: advice } : { help: `${advice} Run mcp-gangway check to see such a line.` };
    logger.warn(
      { server, ...fields },
      'the server writes lines to stdout that are not MCP messages; the gateway drops them',
    );
  }
}
