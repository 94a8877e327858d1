import { describe, expect, it } from 'vitest';
import { readGatewayMessage } from '../../../../src/core/protocol/message/message.ts';
import {
  acceptsQuestions,
  capabilitiesOf,
  readClientFeatures,
  requiredFeature,
} from '../../../../src/core/protocol/methods/askable.ts';

const reduced = (capabilities: object): unknown =>
  JSON.parse(capabilitiesOf(readClientFeatures(Buffer.from(JSON.stringify(capabilities)))));

describe('what a server may ask of its client', () => {
  it.each([
    ['nothing', {}, {}],
    ['elicitation without modes, which is by form', { elicitation: {} }, { elicitation: { form: {} } }],
    ['elicitation at a URL alone', { elicitation: { url: {} } }, { elicitation: { url: {} } }],
    ['both', { elicitation: { url: {}, form: {} } }, { elicitation: { form: {}, url: {} } }],
    ['sampling with its flags', { sampling: { context: {}, tools: {} } }, { sampling: { tools: {}, context: {} } }],
    ['roots, without what only sessions have', { roots: { listChanged: true } }, { roots: {} }],
    ['what no legacy server knows', { extensions: { 'x/y': {} }, experimental: { z: {} } }, {}],
    ['what is no object', { sampling: true, roots: null, elicitation: [] }, {}],
  ])('reduces %s', (_, declared, expected) => {
    expect(reduced(declared)).toEqual(expected);
  });

  it.each([
    [{}, false],
    [{ experimental: {}, extensions: { sampling: {} } }, false],
    [{ sampling: {} }, true],
    [{ elicitation: { url: {} } }, true],
    [{ roots: true }, true],
  ])('a client that declares %j accepts requests of its server: %s', (capabilities, expected) => {
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { capabilities } };
    expect(acceptsQuestions(readGatewayMessage(Buffer.from(JSON.stringify(initialize))))).toBe(expected);
  });

  it('has the same text for the same flags, in whatever order they were declared', () => {
    const textOf = (text: string): string => capabilitiesOf(readClientFeatures(Buffer.from(text)));
    expect(textOf('{"roots":{},"sampling":{}}')).toBe(textOf('{ "sampling" : {}, "roots" : {"x":1} }'));
  });

  it.each([
    ['elicitation/create', {}, 'elicitation', { elicitation: { form: {} } }],
    ['elicitation/create', { mode: 'url' }, 'elicitation.url', { elicitation: { url: {} } }],
    ['sampling/createMessage', {}, 'sampling', { sampling: {} }],
    ['sampling/createMessage', { tools: [] }, 'sampling.tools', { sampling: { tools: {} } }],
    ['roots/list', {}, 'roots', { roots: {} }],
  ])('knows what %s with %o needs', (method, params, flag, required) => {
    const request = readGatewayMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })));
    expect(requiredFeature(request)).toEqual({ flag, required });
  });

  it('knows no need of what no client has', () => {
    expect(requiredFeature(readGatewayMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"x/y"}')))).toBeUndefined();
  });
});
