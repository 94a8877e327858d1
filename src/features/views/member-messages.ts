import type { ViewMember } from '../../config/servers/view-names.ts';
import type { RequestId } from '../../core/protocol/faults.ts';
import { spliceCancelledId } from '../../core/protocol/json.ts';
import { changedMessage, withId } from '../../core/protocol/message/changed-message.ts';
import { putMembers } from '../../core/protocol/message/edit-members.ts';
import { type Message, memberValue } from '../../core/protocol/message/message.ts';
import { BoundedMap } from '../../core/util/bounded-map.ts';

/** The key of `_meta` with the name of the server that sends a request to the client. */
export const serverKey = 'mcp-gangway/server';

/** How many requests of servers, and progress tokens of such requests, are remembered (P8). */
const maxRemembered = 2_000;

/** A request from a server: the position of the server in the view, and its own id or token. */
interface Origin {
  readonly index: number;
  readonly own: RequestId;
}

/** A message of the client for one server. */
export interface RoutedMessage {
  readonly index: number;
  readonly message: Message;
}

/**
 * Keeps apart what the servers of a view send to one client. Two servers count their requests alike, so requests and
 * their progress tokens get numbers of the view.
 */
export class MemberMessages {
  readonly #names: readonly string[];
  readonly #requests = new BoundedMap<RequestId, Origin>(maxRemembered);
  readonly #tokens = new BoundedMap<RequestId, Origin>(maxRemembered);
  /** The id for the client, by the server's position and the server's id. */
  readonly #clientIds = new BoundedMap<string, RequestId>(maxRemembered);
  #count = 0;

  readonly #hasPrefix: readonly boolean[];

  constructor(members: readonly ViewMember[]) {
    this.#names = members.map(({ name }) => name);
    this.#hasPrefix = members.map(({ prefix }) => prefix !== '');
  }

  /** The message as the client gets it. */
  forClient(message: Message, index: number): Message {
    if (message.kind === 'request') return this.#request(message, index);
    if (message.method === 'notifications/message' && this.#hasPrefix[index]) return this.#log(message, index);
    const { cancels } = message;
    if (cancels === undefined) return message;
    // The server's own id could be that of a request of another server.
    const clientId = this.#clientIds.get(keyOf(index, cancels)) ?? this.#newId();
    return changedMessage(message, spliceCancelledId(message.text, JSON.stringify(clientId)), { cancels: clientId });
  }

  /** The client's response for the server that has asked; undefined if no server has. */
  settle(response: Message): RoutedMessage | undefined {
    const { id } = response;
    const origin = id == null ? undefined : this.#requests.get(id);
    if (origin === undefined || id == null) return undefined;
    this.#requests.delete(id);
    this.#clientIds.delete(keyOf(origin.index, origin.own));
    return { index: origin.index, message: withId(response, origin.own) };
  }

  /** The client's progress for the server whose request has this token; undefined if no server has it. */
  progress(notification: Message): RoutedMessage | undefined {
    const { progressToken } = notification;
    const origin = progressToken === undefined ? undefined : this.#tokens.get(progressToken);
    if (origin === undefined) return undefined;
    const text = putMembers(notification, 'params', [['progressToken', JSON.stringify(origin.own)]]);
    return { index: origin.index, message: changedMessage(notification, text, { progressToken: origin.own }) };
  }

  #newId(): RequestId {
    this.#count += 1;
    return this.#count;
  }

  #request(message: Message, index: number): Message {
    const id = this.#newId();
    const own = message.id as RequestId;
    this.#requests.set(id, { index, own });
    this.#clientIds.set(keyOf(index, own), id);
    const { progressToken } = message;
    const meta: [string, string][] = [[serverKey, JSON.stringify(this.#names[index])]];
    if (progressToken !== undefined) {
      this.#tokens.set(id, { index, own: progressToken });
      meta.push(['progressToken', JSON.stringify(id)]);
    }
    const changes = progressToken === undefined ? {} : { progressToken: id };
    return withId(changedMessage(message, putMembers(message, 'meta', meta), changes), id);
  }

  /** The logger of a log message begins with the name of its server. */
  #log(message: Message, index: number): Message {
    const logger = memberValue(message, 'params', 'logger');
    const name = this.#names[index] ?? '';
    const value = JSON.stringify(typeof logger === 'string' ? `${name}/${logger}` : name);
    return changedMessage(message, putMembers(message, 'params', [['logger', value]]), {});
  }
}

const keyOf = (index: number, id: RequestId): string => `${index} ${JSON.stringify(id)}`;
