import type { SessionAnswer } from '../../../../core/call/call-answer.ts';
import { nextOwnId } from '../../../../core/protocol/ids/own-ids.ts';
import { createMessage, type Message } from '../../../../core/protocol/message/message.ts';

/** Asks the server of a group for all its log messages. Each client then filters them by request. */
export const logLevelRequest = (): Message =>
  createMessage({ id: nextOwnId(), method: 'logging/setLevel', params: { level: 'debug' } });

/** Tells the server of a group that no client listens to a resource any more. */
export const unsubscribeRequest = (uri: string): Message =>
  createMessage({ id: nextOwnId(), method: 'resources/unsubscribe', params: { uri } });

/** Its answer shows that the server has read everything before it. */
export const pingRequest = (): Message => createMessage({ id: nextOwnId(), method: 'ping' });

/** The answer to a request of the gateway itself, which goes to no client. */
export class GatewayAnswer implements SessionAnswer {
  readonly stream = undefined;
  readonly hasStream = false;
  readonly #onOver: () => void;

  /** @param onOver called when the request is answered, or has failed */
  constructor(onOver: () => void = () => undefined) {
    this.#onOver = onOver;
  }

  message(): boolean {
    return false;
  }

  response(): void {
    this.#onOver();
  }

  fault(): void {
    this.#onOver();
  }
}

/** The answer to a request of the gateway itself that discards everything. */
export const discardingAnswer: SessionAnswer = new GatewayAnswer();
