import { describe, expect, it } from 'vitest';
import { filterTools } from '../../../../src/core/auth/scopes/filter-tools.ts';
import { filteringReply } from '../../../../src/core/http/replies/filtering-reply.ts';
import { createLoggedBatch, createMessageBatch } from '../../../../src/core/reply/event-batch.ts';
import { createFakeReply } from '../../../support/fake-reply.ts';

const mayCall = (name: string): boolean => name.startsWith('read');
const filtered = (value: unknown) => JSON.parse(filterTools(Buffer.from(JSON.stringify(value)), mayCall).toString());
const listOf = (...tools: object[]) => ({ jsonrpc: '2.0', id: 1, result: { tools, nextCursor: 'x' } });

describe('a list of tools', () => {
  it('has only the tools that the client may call, in their own texts', () => {
    const text = Buffer.from('{"id":1,"result":{"tools":[ {"name" : "read_a"} ,{"name":"write"}],"ttlMs":5}}');
    expect(filterTools(text, mayCall).toString()).toBe('{"id":1,"result":{"tools":[{"name" : "read_a"}],"ttlMs":5}}');
    expect(filterTools(text, () => true)).toBe(text);
  });

  it('is private for caches, even if nothing was removed', () => {
    const list = { id: 1, result: { tools: [{ name: 'read_a' }], cacheScope: 'public' } };
    expect(filtered(list).result.cacheScope).toBe('private');
    const before = { id: 1, result: { cacheScope: 'public', tools: [{ name: 'write' }] } };
    expect(filtered(before).result).toEqual({ cacheScope: 'private', tools: [] });
  });

  it('has no tool whose name cannot be checked', () => {
    expect(filtered(listOf({ name: 7 }, {}, { title: 'read' }, { name: 'read_a' })).result.tools).toEqual([
      { name: 'read_a' },
    ]);
    const twice = Buffer.from('{"id":1,"result":{"tools":[{"name":"read","name":"write"}]}}');
    expect(JSON.parse(filterTools(twice, mayCall).toString()).result.tools).toEqual([]);
  });

  it('is found under an escaped key, and refused if it cannot be read', () => {
    const escaped = Buffer.from('{"id":1,"result":{"\\u0074ools":[{"name":"write"}]}}');
    expect(filterTools(escaped, mayCall).toString()).not.toContain('write');
    for (const text of [
      '{"id":1,"result":{"tools":[],"tools":[{"name":"write"}]}}',
      '{"id":1,"result":{"tools":{"a":"write"}}}',
    ]) {
      const answer = JSON.parse(filterTools(Buffer.from(text), mayCall).toString());
      expect(answer).toMatchObject({ id: 1, error: { data: { reason: 'list_unreadable' } } });
    }
  });

  it('is found in a batch', () => {
    const other = { id: 2, result: { content: [] } };
    expect(filtered([listOf({ name: 'write' }), other])).toEqual([listOf(), other]);
  });
});

describe('another answer', () => {
  it('stays as it is, also with millions of values', () => {
    const text = Buffer.from(
      `{"id":1,"result":{"structuredContent":{"a":[${'0,'.repeat(4_000_000)}0],"b":"other tools"}}}`,
    );
    expect(filterTools(text, mayCall)).toBe(text);
  });
});

describe('the reply to a client', () => {
  it('filters lists on a stream, and keeps the ids of the events and all other events', () => {
    const given = createFakeReply();
    const sink = filteringReply(given, mayCall).stream();
    const list = Buffer.from(JSON.stringify(listOf({ name: 'read_a' }, { name: 'write' })));
    const entry = (seq: number, data: Buffer) => ({ stream: 1, epoch: 2, seq, data });
    sink.write(createMessageBatch(Buffer.from('{"method":"x"}')));
    sink.write(createLoggedBatch([entry(1, Buffer.from('{"method":"y"}')), entry(2, list)], 100));
    expect(given.sink.messages).toEqual([{ method: 'x' }, { method: 'y' }, listOf({ name: 'read_a' })]);
    expect(given.sink.ids.map((id) => id.split('-').at(-1))).toEqual(['1', '2']);
  });

  it('is the same reply for a client that sees all tools', () => {
    const given = createFakeReply();
    expect(filteringReply(given, undefined)).toBe(given);
  });
});
