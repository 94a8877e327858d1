// A client for trials of gateways: it says of each exchange what came, and its exchanges never throw.
import { linesOf, McpSession } from './mcp-session.mjs';

export class TrialClient extends McpSession {
  #nextId = 1;

  constructor(ports, { path } = {}) {
    super(ports, { path, capabilities: { elicitation: {} } });
  }

  /** A call of a tool; `id` is also its progress token. */
  tool(name, args = {}, { id = this.#nextId++, ...options } = {}) {
    const params = { name, arguments: args, _meta: { progressToken: id } };
    return this.request('tools/call', params, { id, ...options });
  }

  /**
   * One request. Resolves with its `answer`, the `messages` before it, the `eventIds`, the HTTP `status`, and what went wrong as `fault`.
   * @param cutAfter the connection is cut after so many messages
   */
  request(method, params, { id = this.#nextId++, limitMs = 10_000, cutAfter, headers = {} } = {}) {
    const text = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    const send = (connection, listener) => this.post(connection, [text], listener, linesOf(headers));
    return this.#observe(send, { awaits: id, limitMs, cutAfter }).isOver;
  }

  /**
   * Opens the GET stream, or goes on with one after `lastEventId`. Returns at once; `isOver` resolves with what came until the answer to
   * `awaits`, or the limit.
   */
  stream({ lastEventId, awaits, limitMs = 5_000 } = {}) {
    const more = lastEventId === undefined ? '' : linesOf({ 'Last-Event-ID': lastEventId });
    return this.#observe((connection, listener) => this.get(connection, listener, more), { awaits, limitMs });
  }

  #observe(send, { awaits, limitMs, cutAfter }) {
    const outcome = { messages: [], eventIds: [] };
    const connection = this.connect();
    let isStopped = false;
    let stop;
    const isOver = new Promise((resolve) => {
      stop = (fault) => {
        isStopped = true;
        clearTimeout(timer);
        connection.destroy();
        resolve(Object.assign(outcome, fault && { fault }));
      };
      const timer = setTimeout(() => stop(`no answer within ${limitMs / 1000} s`), limitMs);
      const take = (text) => {
        if (isStopped) return;
        const message = parsed(text);
        if (message === undefined) return stop('what came is no JSON');
        const isAnswer = message.id === awaits || (message.id === null && message.error !== undefined);
        if (awaits !== undefined && isAnswer && message.method === undefined) {
          outcome.answer = message;
          return stop();
        }
        outcome.messages.push(message);
        if (message.method === 'elicitation/create') this.#accept(message.id);
        if (outcome.messages.length === cutAfter) stop();
      };
      send(connection, {
        onHead: (_, status) => {
          outcome.status = status;
        },
        onEventId: (id) => isStopped || outcome.eventIds.push(id),
        onMessage: take,
        onDone(error, status, text) {
          if (status >= 300 && text.startsWith('{')) take(text);
          stop(error && 'the connection broke');
        },
      });
    });
    return { outcome, isOver, stop };
  }

  /** Answers a question of the server. */
  #accept(id) {
    const text = JSON.stringify({ jsonrpc: '2.0', id, result: { action: 'accept', content: {} } });
    const connection = this.connect();
    this.post(connection, [text], { onMessage: () => undefined, onDone: () => connection.destroy() });
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
