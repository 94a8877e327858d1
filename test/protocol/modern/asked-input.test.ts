import { describe, expect, it } from 'vitest';
import { inputRequiredResult } from '../../../src/protocol/modern/asked-input.ts';
import { read } from './read.ts';

describe('what a legacy server asks, for a modern client', () => {
  const asked = (questions: Record<string, string>, serverInfoText?: string): string =>
    inputRequiredResult('1.0', {
      questions: new Map(Object.entries(questions).map(([key, text]) => [key, read(text)])),
      requestState: 'sealed',
      serverInfoText,
    }).toString();

  it('[P1] [R4.01] [R4.03] [R4.04] is method and params as they were written, without ids, under keys', () => {
    const sampling = '{"messages":[], "maxTokens":1.0}';
    const text = asked({
      a: `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":${sampling}}`,
      b: '{"id":"x","method":"roots/list","jsonrpc":"2.0"}',
    });
    expect(text).toBe(
      `{"jsonrpc":"2.0","id":1.0,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":${sampling}},"b":{"method":"roots/list"}},"requestState":"sealed"}}`,
    );
  });

  it('[R3.04] [R3.08] says who the server is, and nothing of keeping it', () => {
    const { result } = JSON.parse(asked({ a: '{"jsonrpc":"2.0","id":7,"method":"roots/list"}' }, '{"name":"s"}'));
    expect(result._meta).toEqual({ 'io.modelcontextprotocol/serverInfo': { name: 's' } });
    expect(result).not.toHaveProperty('ttlMs');
  });

  it('has no id of its own for what is answered at a URL, and no task', () => {
    const params = (more: string) => `{"mode":"url","url":"https://a.example/"${more}}`;
    const question = (of: string) => `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":${of}}`;
    const text = asked({ a: question(params(',"elicitationId":"e","task":{}')) });
    expect(text).toContain(`{"method":"elicitation/create","params":${params('')}}`);
    const form = '{"message":"m","elicitationId":"kept","requestedSchema":{}}';
    expect(asked({ a: question(form) })).toContain(`"params":${form}`);
  });
});
