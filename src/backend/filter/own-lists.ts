import type { RequestId } from '../../protocol/faults.ts';
import type { ForwardedHeaders } from '../../protocol/http/forwarded-headers.ts';
import { nextOwnId } from '../../protocol/ids/own-ids.ts';
import { scanObject } from '../../protocol/json/scan.ts';
import { type Message, memberRange, readGatewayMessage } from '../../protocol/message/message.ts';
import { TimeLimit } from '../../util/timing/time-limit.ts';
import type { Backend } from '../backend.ts';

/** A server that does not answer the gateway's list request must not keep a call waiting (P3). */
const listTimeoutMs = 30_000;

/** The list requests that the gateway itself sends to one backend, to check calls that come before any list. */
export class OwnLists {
  readonly #send: Backend['send'];
  readonly #open = new Map<RequestId, (response: Buffer | undefined) => void>();

  constructor(send: Backend['send']) {
    this.#send = send;
  }

  /**
   * Requests a page of a list. Resolves to undefined if the server does not give it.
   * @param call the call that needs the list. A modern request carries its protocol version and capabilities
   * @param headers the headers of the client that calls
   */
  request(
    method: string,
    cursor: string | undefined,
    call: Message,
    headers: ForwardedHeaders | undefined,
  ): Promise<Buffer | undefined> {
    const id = nextOwnId();
    const meta = call.isModern ? [`"_meta":${envelopeOf(call)}`] : [];
    const params = [...(cursor === undefined ? [] : [`"cursor":${JSON.stringify(cursor)}`]), ...meta].join();
    const text = `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{${params}}}`;
    return new Promise((resolve) => {
      const limit = new TimeLimit(() => this.#settle(id, undefined), listTimeoutMs);
      this.#open.set(id, (response) => {
        limit.clear();
        resolve(response);
      });
      if (this.#send(readGatewayMessage(Buffer.from(text)), headers) !== 'sent') this.#settle(id, undefined);
    });
  }

  /** Handles a response to a request of the gateway. False if there is no such request. */
  settle({ id, text, isError }: Message): boolean {
    return this.#settle(id as RequestId, isError ? undefined : text);
  }

  /** The server does not answer a request. False if the gateway has not sent it. */
  fail(id: RequestId): boolean {
    return this.#settle(id, undefined);
  }

  /** The backend has ended. */
  close(): void {
    for (const id of [...this.#open.keys()]) this.#settle(id, undefined);
  }

  #settle(id: RequestId, response: Buffer | undefined): boolean {
    const resolve = this.#open.get(id);
    this.#open.delete(id);
    resolve?.(response);
    return resolve !== undefined;
  }
}

/** The members of a modern request's `_meta` that every request carries, as JSON text. */
function envelopeOf(call: Message): string {
  const range = memberRange(call, 'params', '_meta');
  const meta = range === undefined ? Buffer.from('{}') : call.text.subarray(range.start, range.end);
  const members = scanObject(meta);
  if (members === undefined || members === 'duplicate_key') return '{}';
  const texts = members.keys.flatMap((key, index) => {
    const value = meta.toString('utf8', members.starts[index], members.ends[index]);
    return key.startsWith('io.modelcontextprotocol/') ? [`${JSON.stringify(key)}:${value}`] : [];
  });
  return `{${texts.join()}}`;
}
