import type { RequestId } from '../faults.ts';
import type { TextRun } from '../wire/text-run.ts';
import type { Message } from './message-type.ts';
import { ProgressMessage } from './progress-fast-path.ts';

/**
 * Consecutive progress notifications of one token, as one unit on their way through the gateway. Each stays a message
 * and an event of its own for the client.
 */
export class ProgressRun {
  readonly texts: TextRun;
  readonly progressToken: RequestId;

  constructor(texts: TextRun, progressToken: RequestId) {
    this.texts = texts;
    this.progressToken = progressToken;
  }

  /** The first notification. */
  get first(): Message {
    return new ProgressMessage(this.texts.text(0), this.progressToken);
  }

  /** The notifications one by one. */
  messages(): Message[] {
    return this.texts.texts().map((text) => new ProgressMessage(text, this.progressToken));
  }

  /** The notifications of a range. */
  slice(from: number, to?: number): ProgressRun {
    return new ProgressRun(this.texts.slice(from, to), this.progressToken);
  }
}

/** A message of a server, or a run of them. */
export type ServerUnit = Message | ProgressRun;

/** The messages of units, one by one and in order. */
export const messagesOf = (units: readonly ServerUnit[]): Message[] =>
  units.flatMap((unit) => (unit instanceof ProgressRun ? unit.messages() : [unit]));
