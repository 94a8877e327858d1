import type { Logger } from 'pino';
import type { ModernObserver } from '../../modern/modern-observer.ts';
import type { SessionObserver } from '../../session/session-observer.ts';

/** How much of the first line is shown. */
const shownBytes = 200;

const advice = 'Configure the server to log to stderr: stdout is only for MCP messages.';

/** The parts of a gateway that are told of noise. */
export interface StdoutNoiseLogOptions {
  readonly logger: Logger;
  /** The log is read in the terminal of the person who runs the gateway. */
  readonly isAtTerminal: boolean;
  /** Is told of a server's first line that is no message, cut. */
  onFirst?: ((server: string, line: string) => void) | undefined;
}

/**
 * Tells the operator, once for each server, that the server writes lines to stdout that are no MCP messages. Most such
 * lines are harmless, but a server that writes its answers in another form looks silent without this notice.
 *
 * The line itself may hold what a client said (P12). A log that is kept shows it only if the server wrote it before it had
 * answered `initialize`: until then no client has said anything.
 */
export class StdoutNoiseLog {
  readonly #options: StdoutNoiseLogOptions;
  readonly #told = new Set<string>();

  constructor(options: StdoutNoiseLogOptions) {
    this.#options = options;
  }

  readonly sessions: Partial<SessionObserver> = {
    dropped: ({ server }, what, text, isAtStart = false) => {
      if (what === 'noise') this.#note(server, text, isAtStart);
    },
  };

  readonly modern: Partial<ModernObserver> = {
    dropped: (server, what, text) => {
      if (what === 'noise') this.#note(server, text, false);
    },
  };

  /** The server is not configured any more. */
  forget(server: string): void {
    this.#told.delete(server);
  }

  #note(server: string, text: Buffer | undefined, isAtStart: boolean): void {
    if (this.#told.has(server)) return;
    this.#told.add(server);
    const { logger, isAtTerminal, onFirst } = this.#options;
    const line = text?.subarray(0, shownBytes).toString() ?? '';
    const isShown = isAtTerminal || isAtStart;
    const fields = isShown ? { line, help: advice } : { help: `${advice} Run mcp-gangway check to see such a line.` };
    logger.warn(
      { server, ...fields },
      'the server writes lines to stdout that are not MCP messages; the gateway drops them',
    );
    onFirst?.(server, line);
  }
}
