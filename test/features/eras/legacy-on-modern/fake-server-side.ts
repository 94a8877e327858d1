import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import type { CallAnswer } from '../../../../src/core/call/call-answer.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { Translator } from '../../../../src/features/eras/legacy-on-modern/translator.ts';
import type { ModernServerAccess } from '../../../../src/features/eras/modern/session-access.ts';
import { asMessage } from '../../../support/as-message.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test reads messages of every shape
type Json = any;

/** A request as the server got it, and what came of it. */
export interface Asked {
  /** Parsed. */
  readonly request: Json;
  readonly text: string;
  readonly logLevel: string | undefined;
  readonly headers: unknown;
  readonly answer: CallAnswer;
  /** Its client does not wait any more. */
  isCancelled: boolean;
  /** The reason that it gave. */
  cancelledFor: string | undefined;
  /** Answers it with a result. */
  result(result: object): void;
  error(error: object): void;
  /** Sends a notification that belongs to it. */
  notify(method: string, params?: object): boolean;
}

export const supported = {
  resources: { subscribe: true, listChanged: true },
  tools: { listChanged: true },
  logging: {},
};

const initialize = {
  protocolVersion: '2025-06-18',
  capabilities: { roots: {}, tasks: {} },
  clientInfo: { name: 'client', version: '1' },
};

/** A translator between a session and a server that are both the test's. */
export function createTranslation(maxQueuedBytes = 1_000_000) {
  const asked: Asked[] = [];
  const notified: Json[] = [];
  /** What the session was told, in order: messages with the request that they belong to, and unanswered requests. */
  const told: Json[] = [];
  const ends: BackendEnd[] = [];
  let refusal: Reason | undefined;
  const server: ModernServerAccess = {
    name: 'configured',
    revision: '2026-07-28',
    request(message, logLevel, answer, headers) {
      const request = JSON.parse(message.text.toString());
      const respond = (outcome: object): void =>
        answer.response(asMessage({ jsonrpc: '2.0', id: request.id, ...outcome }), 200);
      const entry: Asked = {
        ...{
          request,
          text: message.text.toString(),
          logLevel,
          answer,
          headers,
          isCancelled: false,
          cancelledFor: undefined,
        },
        result: (result) => respond({ result: { resultType: 'complete', ...result } }),
        error: (error) => respond({ error: { code: 1, message: 'x', ...error } }),
        notify: (method, params = {}) => answer.message(asMessage({ jsonrpc: '2.0', method, params })),
      };
      asked.push(entry);
      return (reason) => {
        entry.isCancelled = true;
        entry.cancelledFor = reason;
      };
    },
    notify(notification) {
      notified.push(JSON.parse(notification.text.toString()));
      return refusal;
    },
    release: () => undefined,
  };
  const portions: number[] = [];
  const translator = new Translator(
    { server, isOverHttp: false, maxQueuedBytes },
    {
      onMessages(messages, of) {
        portions.push(messages.length);
        for (const { text } of messages) told.push({ of, ...JSON.parse(text.toString()) });
      },
      onNoise: (text) => told.push({ noise: text.toString() }),
      onUnanswered: (ids, reason) => told.push({ ids, reason }),
      onEnd: (end) => ends.push(end),
    },
    { headers: () => ({ newest: '1' }) },
  );
  const send = (message: object, headers = {}) => translator.send(asMessage({ jsonrpc: '2.0', ...message }), headers);
  return {
    ...{ translator, asked, notified, told, ends, portions, send },
    refuseNotifications(reason: Reason) {
      refusal = reason;
    },
    /** What was told since the last time. */
    async heard(): Promise<Json[]> {
      await Promise.resolve();
      await Promise.resolve();
      return told.splice(0);
    },
    request: (id: unknown, method: string, params: object = {}, headers = {}) => send({ id, method, params }, headers),
    /** The newest request to the server. */
    get last(): Asked {
      return asked.at(-1) as Asked;
    },
    /** Opens the session. */
    async open(capabilities: object = supported) {
      send({ id: 'init', method: 'initialize', params: initialize });
      asked.splice(0)[0]?.result({ capabilities, supportedVersions: ['2026-07-28'] });
      return this.heard();
    },
  };
}
