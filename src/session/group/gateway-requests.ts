import type { SessionAnswer } from '../../call/call-answer.ts';
import { createMessage, type Message } from '../../protocol/message/message.ts';

/** Asks the server of a group for all its log messages. Each client then filters them by request. */
export const logLevelRequest = createMessage({
  id: 'mcp-gangway-log-level',
  method: 'logging/setLevel',
  params: { level: 'debug' },
});

/** Tells the server of a group that no client listens to a resource any more. */
export const unsubscribeRequest = (uri: string, number: number): Message =>
  createMessage({ id: `mcp-gangway-unsubscribe-${number}`, method: 'resources/unsubscribe', params: { uri } });

/** The answer to a request of the gateway itself. It discards everything. */
export const discardingAnswer: SessionAnswer = {
  stream: undefined,
  hasStream: false,
  faultsInBand: true,
  message: () => false,
  response: () => undefined,
  fault: () => undefined,
  abandon: () => undefined,
};
