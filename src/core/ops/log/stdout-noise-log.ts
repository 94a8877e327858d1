import type { Logger } from 'pino';
import type { BadAnswer } from '../../protocol/message/message.ts';
import type { SessionName } from '../../session/session-events.ts';
import { BoundedMap } from '../../util/bounded-map.ts';
import type { GatewayEvent } from '../gateway-events.ts';
import { methodLabel } from '../metrics/method-labels.ts';

/** How much of the first line is logged. */
const maxLoggedBytes = 200;

/** The limit for remembered sessions of a server (P8). The session that was reported first makes room. */
const maxWarned = 10_000;

const advice = 'Configure the server to log to stderr: stdout is only for MCP messages.';

const answerAdvice =
  'The call ended with the error bad_response. Report the fault to the author of the server. Further such answers are not reported.';

/** The key for the warning of a session's bad answers. */
const answerKey = (session: string): string => `answer ${session}`;

/** The settings of a stdout noise log. */
export interface StdoutNoiseLogOptions {
  readonly logger: Logger;
  /** The log is read in the terminal of the person who runs the gateway. */
  readonly isAtTerminal: boolean;
}

/**
 * Warns the operator, once for each session and shared process, that the server writes lines to stdout that are not MCP messages. Most such
 * lines are harmless, but a server that writes its answers in another form looks silent without this warning.
 *
 * The line may contain what a client sent (P12). A log that is kept shows the line only if the server wrote it before
 * it answered `initialize`: no client has sent anything before that.
 *
 * Another warning tells of the first answer of a session that is no valid message. A last one tells that output of a spare process was dropped.
 */
export class StdoutNoiseLog {
  readonly #options: StdoutNoiseLogOptions;
  /** The short names of sessions whose line was reported, by server. The empty name is the shared process. */
  readonly #warned = new Map<string, BoundedMap<string, true>>();
  readonly #serversWithExcess = new Set<string>();

  constructor(options: StdoutNoiseLogOptions) {
    this.#options = options;
  }

  readonly receive = (event: GatewayEvent): void => {
    if (event.type === 'session-message-dropped' && event.reason === 'noise')
      this.#report(event.name, event.text, event.isAtStart);
    if (event.type === 'shared-message-dropped' && event.reason === 'noise')
      this.#report({ server: event.server, session: '' }, event.text, false);
    if (event.type === 'session-message-dropped' && event.answer !== undefined)
      this.#reportAnswer(event.name, event.answer, event.text);
    if (event.type === 'shared-message-dropped' && event.answer !== undefined)
      this.#reportAnswer({ server: event.server, session: '' }, event.answer, event.text);
    if (event.type === 'session-ended') {
      const warned = this.#warned.get(event.name.server);
      warned?.delete(event.name.session);
      warned?.delete(answerKey(event.name.session));
    }
    if (event.type === 'spare-output-dropped') this.#reportExcess(event.server);
    if (event.type === 'server-removed') {
      this.#warned.delete(event.server);
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

  /** Warns of an answer that is no valid message. The answer is shown only to the person at the terminal. */
  #reportAnswer({ server, session }: SessionName, { method, problem }: BadAnswer, text: Buffer | undefined): void {
    if (this.#wasWarned(server, answerKey(session))) return;
    const { logger, isAtTerminal } = this.#options;
    const line = text?.subarray(0, maxLoggedBytes).toString();
    const fields = { server, ...(session !== '' && { session }), ...(isAtTerminal && { line }), help: answerAdvice };
    logger.warn(fields, `an answer to ${methodLabel(method)} is not valid JSON-RPC: ${problem}`);
  }

  /** True if this was reported before. It counts as reported from now on. */
  #wasWarned(server: string, key: string): boolean {
    const warned = this.#warned.get(server) ?? new BoundedMap(maxWarned);
    this.#warned.set(server, warned);
    if (warned.has(key)) return true;
    warned.set(key, true);
    return false;
  }

  #report({ server, session }: SessionName, text: Buffer | undefined, isAtStart: boolean): void {
    if (this.#wasWarned(server, session)) return;
    const { logger, isAtTerminal } = this.#options;
    const line = text?.subarray(0, maxLoggedBytes).toString() ?? '';
    const showsLine = isAtTerminal || isAtStart;
    const fields = showsLine ? { line, help: advice } : { help: `${advice} Run mcp-gangway check to see such a line.` };
    logger.warn(
      { server, ...(session !== '' && { session }), ...fields },
      'the server writes lines to stdout that are not MCP messages; the gateway drops them',
    );
  }
}
