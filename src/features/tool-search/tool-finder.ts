// src/features/tool-search: two tools in place of a long list: one finds tools, the other one calls them.

import type { ToolSearchOptions } from '../../app/features/calls.ts';
import { readSender } from '../../core/auth/request-sender.ts';
import type { BackendEnd, RequestIds, Sent } from '../../core/backend/backend.ts';
import { AnswerWatcher } from '../../core/backend/link/answer-watcher.ts';
import type { Outgoing } from '../../core/backend/link/link.ts';
import { isResponse, OwnRequests } from '../../core/backend/own-requests.ts';
import type { Reason, RequestId } from '../../core/protocol/faults.ts';
import { nextOwnId } from '../../core/protocol/ids/own-ids.ts';
import {
  errorCodeIn,
  findRange,
  type Replacement,
  readScalar,
  replaceParts,
  scalarAt,
  scanList,
  valueAt,
} from '../../core/protocol/json.ts';
import { readListItems, readNextCursor, walkPages } from '../../core/protocol/list-page.ts';
import { changedMessage } from '../../core/protocol/message/changed-message.ts';
import { createFaultResponse } from '../../core/protocol/message/gateway-fault.ts';
import {
  createMessage,
  type Message,
  memberRange,
  memberValue,
  readGatewayMessage,
} from '../../core/protocol/message/message.ts';
import { listOf } from '../../core/protocol/methods/methods.ts';
import { detach } from '../../core/util/boundary.ts';
import { callTool, findTool, mostTools, searchToolsText, usualTools } from './search-tools.ts';
import type { ToolIndex, ToolIndexes } from './tool-index.ts';

const listTools = listOf('tools/list');

/** How long the servers of the view have for one page. Their view leaves out one that is silent for longer. */
const pageMs = 30_000;
/** The tools that are read (P8). */
const maxTools = 10_000;
/** An answer has at most about this many bytes of tools: it is for a model. */
const maxFoundBytes = 64 * 1024;
/** A longer schema is not repeated in an error. */
const maxSchemaBytes = 8 * 1024;

const invalidParams = -32602;
/** What frameworks write into the result of a tool whose arguments do not fit its schema. */
const schemaFault = /-32602|validation error|invalid (?:arguments|parameters|input)/i;
/** Only the beginning of a result is searched for it. */
const maxReadBytes = 4 * 1024;

/** The search of one backend. It remembers the tools of calls at the servers. */
export class ToolFinder extends AnswerWatcher<string> {
  readonly #options: ToolSearchOptions;
  readonly #indexes: ToolIndexes;
  readonly #own = new OwnRequests();
  #index: Promise<ToolIndex | undefined> | undefined;

  constructor(options: ToolSearchOptions, indexes: ToolIndexes) {
    super();
    this.#options = options;
    this.#indexes = indexes;
  }

  override onSend(outgoing: Outgoing): Outgoing | Sent {
    const { message } = outgoing;
    const { kind, method, id } = message;
    if (kind !== 'request' || id == null) return outgoing;
    if (method === listTools.name) {
      const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":${searchToolsText(this.#options.servers)}}}`;
      this.answer(readGatewayMessage(Buffer.from(text)));
      return 'sent';
    }
    if (method !== 'tools/call') return outgoing;
    const name = memberValue(message, 'params', 'name');
    if (name === findTool) {
      detach('backend', this.#find(outgoing), () => this.answer(createFaultResponse('internal', id)));
      return 'sent';
    }
    if (name === callTool) {
      this.answer(
        toolError(
          id,
          `${callTool} needs the name of a tool that ${findTool} has found, and its arguments as an object.`,
        ),
      );
      return 'sent';
    }
    if (typeof name === 'string') this.note(message, name);
    return outgoing;
  }

  override onMessages(messages: readonly Message[], related: RequestIds | undefined): readonly Message[] {
    const others = messages.filter((message) => {
      if (message.kind === 'response') return !this.#own.answer(message);
      if (message.method !== listTools.list.changed) return true;
      // The two tools stay the same. The next search reads the lists again.
      this.#index = undefined;
      return false;
    });
    return super.onMessages(others, related);
  }

  protected override onAnswer(answer: Message, tool: string, related: RequestIds | undefined): Message | undefined {
    if (!saysBadArguments(answer)) return answer;
    this.keep(answer, related, this.#addSchema(answer, tool), 'internal');
    return undefined;
  }

  override onUnanswered(ids: RequestIds, reason: Reason, isFinal: boolean | undefined): void {
    const others = ids.filter((id) => !this.#own.lose(id, reason));
    if (others.length > 0) super.onUnanswered(others, reason, isFinal);
  }

  override onEnd(end: BackendEnd): void {
    this.#own.end(end);
    super.onEnd(end);
  }

  async #find(outgoing: Outgoing): Promise<void> {
    const { message, headers } = outgoing;
    const id = message.id as RequestId;
    const given = memberRange(message, 'params', 'arguments');
    const text = given ? message.text.subarray(given.start, given.end) : Buffer.from('{}');
    const [query, limit = usualTools] = [scalarAt(text, ['query']), scalarAt(text, ['limit'])];
    if (typeof query !== 'string' || query.trim() === '')
      return this.answer(toolError(id, `${findTool} needs a query: what the tool should do, in a few words.`));
    const index = await this.#tools(outgoing);
    if (index === undefined) return this.answer(createFaultResponse('list_unreadable', id));
    const scopes = readSender(headers)?.scopes;
    const wanted = Math.min(mostTools, Math.max(1, typeof limit === 'number' ? Math.floor(limit) : usualTools));
    const found = index.search(query, wanted, (tool) => this.#options.mayCall(tool, scopes));
    this.answer(createMessage({ id, result: { content: [{ type: 'text', text: foundText(found) }] } }));
  }

  /** The tools of the view, as the servers list them now. Undefined if they cannot be read. */
  #tools(outgoing: Outgoing): Promise<ToolIndex | undefined> {
    const index = this.#index ?? this.#read(outgoing);
    this.#index = index;
    const forget = (): void => {
      if (this.#index === index) this.#index = undefined;
    };
    return index.then((read) => {
      if (read === undefined) forget();
      return read;
    });
  }

  async #read({ headers }: Outgoing): Promise<ToolIndex | undefined> {
    const tools: Buffer[] = [];
    const end = await walkPages(async (cursor) => {
      const params = cursor === undefined ? {} : { cursor };
      const request = createMessage({ id: nextOwnId(), method: listTools.name, params });
      const answer = await this.#own.send(request, (own) => this.passSend(own, headers), pageMs);
      if (!isResponse(answer)) return 'unread';
      const { text } = answer;
      const items = readListItems(text, listTools.list.key);
      if (typeof items === 'string') return 'unread';
      for (const { start, end } of items.items) tools.push(text.subarray(start, end));
      return { nextCursor: tools.length < maxTools ? readNextCursor(text, cursor) : undefined };
    });
    return end === 'unread' ? undefined : this.#indexes.of(tools.slice(0, maxTools));
  }

  /** Tells a client whose arguments do not fit what the tool expects, if that is known. */
  async #addSchema(response: Message, tool: string): Promise<Message> {
    const index = await this.#tools({ message: response, headers: undefined });
    const item = index?.get(tool);
    const schema = item && valueAt(item, ['inputSchema']);
    return schema === undefined || schema.length > maxSchemaBytes ? response : withSchema(response, schema.toString());
  }
}

const toolError = (id: RequestId, text: string): Message =>
  createMessage({ id, result: { content: [{ type: 'text', text }], isError: true } });

/** The tools for a model: one JSON object on each line. */
function foundText(found: readonly Buffer[]): string {
  if (found.length === 0) return 'No tool matches. Try other words.';
  const lines: string[] = [];
  let bytes = 0;
  for (const tool of found) {
    bytes += tool.length;
    if (bytes > maxFoundBytes && lines.length > 0) break;
    lines.push(tool.toString().replace(/[\r\n]/g, ' '));
  }
  const more = found.length - lines.length;
  if (more > 0)
    lines.push(`${more} more match, which are too long for this answer. Use a smaller limit or other words.`);
  return lines.join('\n');
}

/** True for an answer that says that the arguments do not fit the schema of the tool. */
function saysBadArguments(response: Message): boolean {
  const { text, isError, reportsToolError } = response;
  if (isError) return errorCodeIn(text) === invalidParams;
  return reportsToolError && schemaFault.test(text.toString('utf8', 0, maxReadBytes));
}

/** Adds the schema of a tool to the words of an answer. */
function withSchema(response: Message, schema: string): Message {
  const { text } = response;
  const words = `The input schema of this tool is ${schema}`;
  const parts: Replacement[] = [];
  if (response.isError) {
    const at = findRange(text, ['error', 'message']);
    const said = typeof at === 'object' ? readScalar(text, at) : undefined;
    if (typeof at === 'object' && typeof said === 'string')
      parts.push({ ...at, by: JSON.stringify(`${said} ${words}`) });
  } else {
    const list = findRange(text, ['result', 'content']);
    if (typeof list === 'object') {
      const isEmpty = scanList(text.subarray(list.start, list.end))?.length === 0;
      const item = JSON.stringify({ type: 'text', text: words });
      parts.push({ start: list.end - 1, end: list.end - 1, by: isEmpty ? item : `,${item}` });
    }
  }
  return parts.length === 0 ? response : changedMessage(response, replaceParts(text, parts), {});
}
