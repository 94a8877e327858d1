import { describe, expect, it } from 'vitest';
import { MessageReceiver, type MessageReceiverOptions } from '../../../../src/core/http/pipeline/receive-messages.ts';
import { type Refusal, RequestContext } from '../../../../src/core/http/request-context.ts';
import type { Reason } from '../../../../src/core/protocol/faults.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';
import { alice, createAuthorization } from '../admission-fixture.ts';

const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const call = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"drop_table"}}';

/** A context that keeps a journal of what its receiver does. */
class JournalContext extends RequestContext {
  readonly headers = { 'mcp-protocol-version': '2025-11-25' };
  readonly url = '/mcp';
  readonly requestId = 'its id';
  readonly accepts = { json: true, sse: true };
  readonly journal: unknown[] = [];
  readonly #refusal: Reason | undefined;

  constructor(refusal?: Reason) {
    super();
    this.sender = { identity: alice, principal: alice.principal, forwarded: {} };
    this.#refusal = refusal;
  }

  admitMessages(messages: readonly unknown[]): Reason | undefined {
    this.journal.push(`admit ${messages.length}`);
    return this.#refusal;
  }

  countMessages(messages: readonly unknown[]): void {
    this.journal.push(`count ${messages.length}`);
  }

  refuse(refusal: Refusal): void {
    this.journal.push(refusal);
  }

  fail(): void {
    this.journal.push('fail');
  }
}

/** Receives a text, and returns what happened in its order. */
async function receive(text: string, options: Partial<MessageReceiverOptions> = {}, refusal?: Reason) {
  const context = new JournalContext(refusal);
  const { journal } = context;
  const plain = createFakeReply();
  const receiver = new MessageReceiver<JournalContext>(
    {
      createReply(_context, { id }) {
        journal.push(`reply to ${id}`);
        return plain;
      },
      dispatch(_context, posted, reply) {
        journal.push(`dispatch ${posted.messages.map(({ method }) => method)}${reply === plain ? '' : ' traced'}`);
      },
    },
    { server: { name: 'git' }, authorization: createAuthorization(), maxDepth: 10, ...options },
    'http',
  );
  receiver.receive(context, await receiver.read(context, Buffer.from(text)));
  return { context, journal };
}

const toolScopes = { 'drop_*': ['write'] };

describe('messages of a client', () => {
  it('are admitted, counted, answered and dispatched, in this order', async () => {
    const { context, journal } = await receive(`[${ping},${call}]`);
    expect(journal).toEqual(['admit 2', 'count 2', 'reply to null', 'dispatch ping,tools/call']);
    expect(context.messages).toHaveLength(2);
    expect([context.needs, context.tracedMessages, context.answerId]).toEqual([undefined, undefined, null]);
  });

  it('may have a byte order mark in front (RFC 8259, section 8.1)', async () => {
    expect((await receive(`\ufeff${ping}`)).journal).toContain('dispatch ping');
    expect((await receive(`\ufeff\ufeff${ping}`)).journal).toContainEqual({ ok: false, reason: 'not_json', id: null });
  });

  it('that cannot be read are admitted as one text and refused, and nothing else', async () => {
    const { context, journal } = await receive('{"jsonrpc":"1.0","id":7,"method":"ping"}');
    expect(journal).toEqual(['admit 0', { ok: false, reason: 'not_json_rpc', id: 7 }]);
    expect([context.messages, context.answerId]).toEqual([undefined, 7]);
  });

  it('beyond a quota are refused before their scopes are looked at', async () => {
    const authorization = createAuthorization({ toolScopes });
    const { journal } = await receive(call, { authorization }, 'quota_requests');
    expect(journal).toEqual(['admit 1', { reason: 'quota_requests', id: 2 }]);
  });

  it('for which a scope is missing are refused together, with everything to ask for, and are not counted', async () => {
    const authorization = createAuthorization({ toolScopes: { ...toolScopes, 'read_*': ['read'] } });
    const { context, journal } = await receive(`[${ping},${call}]`, { authorization });
    expect(journal).toEqual([
      'admit 2',
      {
        id: null,
        reason: 'insufficient_scope',
        data: { scope: 'write read' },
        wwwAuthenticate: expect.stringContaining('scope="write read", resource_metadata="https://gateway/metadata"'),
      },
    ]);
    expect(context.messages).toHaveLength(2);
  });

  it('are dispatched with the scopes that they need', async () => {
    const authorization = createAuthorization({ toolScopes: { 'drop_*': ['read'] } });
    const { context, journal } = await receive(call, { authorization });
    expect(context.needs).toEqual(['read']);
    expect(journal).toContain('dispatch tools/call');
  });

  it('are dispatched as they are traced, and the context keeps them as they came', async () => {
    const seen: unknown[] = [];
    const { context, journal } = await receive(ping, {
      tracePosts: (server, protocol) => (posted, headers, requestId) => {
        seen.push(server, protocol, headers, requestId);
        return { posted: { ...posted, messages: [...posted.messages] }, traceReply: () => createFakeReply() };
      },
    });
    expect(journal).toEqual(['admit 1', 'count 1', 'reply to 1', 'dispatch ping traced']);
    expect(seen).toEqual(['git', 'http', { 'mcp-protocol-version': '2025-11-25' }, 'its id']);
    expect(context.tracedMessages).toEqual(context.messages);
    expect(context.tracedMessages).not.toBe(context.messages);
  });

  it('without a span are dispatched with the plain reply', async () => {
    const { context, journal } = await receive(ping, { tracePosts: () => () => undefined });
    expect(journal).toContain('dispatch ping');
    expect(context.tracedMessages).toBeUndefined();
  });
});
