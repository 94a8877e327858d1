// A client over Streamable HTTP for trials of gateways: it says of each exchange what came, and never throws. McpSession is for load.
import { protocolVersion } from './mcp-session.mjs';

const accept = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json' };

export class TrialClient {
  #url;
  #nextId = 1;
  /** Of its session, if the gateway gave one. */
  id;

  constructor(port, path = '/mcp') {
    this.#url = `http://127.0.0.1:${port}${path}`;
  }

  /** The same session at another gateway, or with another id. */
  at(port, id = this.id) {
    const client = new TrialClient(port, new URL(this.#url).pathname);
    client.id = id;
    return client;
  }

  /** Opens a session. Resolves with the outcome of `initialize`. */
  async open() {
    const outcome = await this.request('initialize', {
      ...{ protocolVersion, capabilities: { elicitation: {} } },
      clientInfo: { name: 'trial', version: '1' },
    });
    await this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return outcome;
  }

  /** A call of a tool; `id` is also its progress token. */
  call(name, args = {}, { id = this.#nextId++, ...options } = {}) {
    const params = { name, arguments: args, _meta: { progressToken: id } };
    return this.request('tools/call', params, { id, ...options });
  }

  /**
   * One request. Resolves with its `answer`, the `messages` before it, the `eventIds`, the HTTP `status`, and what went wrong as `fault`.
   * @param cutAfter the connection is cut after so many messages
   */
  async request(method, params = {}, { id = this.#nextId++, limitMs = 10_000, cutAfter, headers } = {}) {
    const limit = AbortSignal.timeout(limitMs);
    const outcome = { messages: [], eventIds: [] };
    try {
      const response = await this.#post({ jsonrpc: '2.0', id, method, params }, { headers, signal: limit });
      outcome.status = response.status;
      this.id ??= response.headers.get('mcp-session-id') ?? undefined;
      await this.#read(response, outcome, { id, cutAfter });
    } catch (error) {
      outcome.fault = limit.aborted ? `no answer within ${limitMs / 1000} s` : 'the connection broke';
      outcome.error = error;
    }
    return outcome;
  }

  /**
   * Opens the GET stream, or goes on with one after `lastEventId`. Returns at once; `isOver` resolves with what came until the answer to
   * `awaits`, or the limit.
   */
  listen({ lastEventId, awaits, limitMs = 5_000 } = {}) {
    const stop = new AbortController();
    const outcome = { messages: [], eventIds: [] };
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(limitMs)]);
    const run = async () => {
      try {
        const more = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
        const headers = { Accept: 'text/event-stream', ...this.#sessionHeaders(), ...more };
        const response = await fetch(this.#url, { headers, signal });
        outcome.status = response.status;
        await this.#read(response, outcome, { id: awaits });
      } catch (error) {
        outcome.error = error;
      }
      return outcome;
    };
    return { outcome, isOver: run(), stop: () => stop.abort() };
  }

  async #read(response, outcome, { id, cutAfter }) {
    for await (const { data, eventId } of eventsOf(response)) {
      if (eventId !== undefined) outcome.eventIds.push(eventId);
      if (data === '') continue;
      const message = JSON.parse(data);
      const isAnswer = message.id === id || (message.id === null && message.error !== undefined);
      if (id !== undefined && isAnswer && message.method === undefined) {
        outcome.answer = message;
        return;
      }
      outcome.messages.push(message);
      if (message.method === 'elicitation/create')
        void this.#send({ jsonrpc: '2.0', id: message.id, result: { action: 'accept', content: {} } });
      if (outcome.messages.length === cutAfter) return; // the end of the loop closes the connection
    }
  }

  #post(message, { headers, signal = AbortSignal.timeout(10_000) } = {}) {
    const all = { ...accept, ...this.#sessionHeaders(), ...headers };
    return fetch(this.#url, { method: 'POST', headers: all, body: JSON.stringify(message), signal });
  }

  /** Posts what has no answer. */
  async #send(message) {
    const response = await this.#post(message).catch(() => undefined);
    await response?.body?.cancel();
  }

  #sessionHeaders() {
    return this.id === undefined ? {} : { 'Mcp-Session-Id': this.id, 'Mcp-Protocol-Version': protocolVersion };
  }
}

/** The events of a response; a body that is no stream is one. */
async function* eventsOf(response) {
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    const text = await response.text();
    if (text.startsWith('{')) yield { data: text };
    return;
  }
  let held = '';
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    const events = (held + text).replaceAll('\r', '').split('\n\n');
    held = events.pop();
    for (const event of events) {
      const field = (name) => new RegExp(`^${name}: ?(.*)$`, 'm').exec(event)?.[1];
      yield { data: field('data') ?? '', eventId: field('id') };
    }
  }
}
