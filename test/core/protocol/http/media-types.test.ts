import { describe, expect, it } from 'vitest';
import { isJsonContentType, readAccept } from '../../../../src/core/protocol/http/media-types.ts';

const both = { json: true, sse: true };
const json = { json: true, sse: false };
const sse = { json: false, sse: true };
const neither = { json: false, sse: false };

describe('readAccept', () => {
  it.each([
    [undefined, both],
    ['', both],
    ['  ', both],
    ['*/*', both],
    ['application/json, text/event-stream', both],
    ['text/event-stream, application/json', both],
    ['text/event-stream,application/json', both],
    ['application/json , text/event-stream', both],
    ['application/json;q=0.9, text/event-stream;q=0.1', both],
    ['Application/JSON, Text/Event-Stream', both],
    ['application/json; charset=utf-8, text/event-stream; charset=utf-8', both],
    ['application/*, text/*', both],
    ['application/json, text/*', both],
    ['text/html, */*;q=0.8', both],
    ['application/json, text/event-stream, */*', both],
    ['application/json;q=0.001, text/event-stream;q=1.000', both],
    [',application/json,,text/event-stream,', both],
  ])('[B08] %j allows both', (header, expected) => {
    expect(readAccept(header)).toEqual(expected);
  });

  it.each([
    ['application/json', json],
    ['application/json;q=0.5', json],
    ['application/*', json],
    ['APPLICATION/JSON', json],
    ['application/json, text/html', json],
    ['application/json, text/event-stream;q=0', json],
    ['application/json, text/event-stream; q=0.000', json],
    ['application/json, text/event-stream;Q=0', json],
    ['*/*, text/event-stream;q=0', json],
    ['*/*, text/*;q=0', json],
    ['text/event-stream', sse],
    ['text/*', sse],
    ['text/event-stream;q=0.1', sse],
    ['text/*;q=0, text/event-stream', sse],
    ['*/*, application/json;q=0', sse],
    ['application/*;q=0, */*', sse],
    ['application/*, application/json;q=0, text/event-stream', sse],
  ])('[B08] %j allows one', (header, expected) => {
    expect(readAccept(header)).toEqual(expected);
  });

  it.each([
    'text/html',
    'text/plain, image/*',
    'application/json;q=0',
    'application/json;q=0, text/event-stream;q=0',
    '*/*;q=0',
    '*/*;q=0.0',
    'application/jsonx',
    'application/json-seq',
    'application/json-patch+json',
    'application/vnd.api+json',
    'text/event-streams',
    'xapplication/json',
    'application',
    'json',
    '*',
    'application/json text/event-stream',
    ';',
    ',',
    '__proto__',
    'constructor',
  ])('[B08] [R7.05] %j allows neither', (header) => {
    expect(readAccept(header)).toEqual(neither);
  });
});

describe('isJsonContentType', () => {
  it.each([
    'application/json',
    'APPLICATION/JSON',
    'Application/Json',
    'application/json;charset=utf-8',
    'application/json; charset=utf-8',
    'application/json ; charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; CHARSET=Utf-8',
    'application/json; charset=utf8',
    'application/json; profile=x; charset=utf-8',
    'application/json; profile="a"',
    'application/json;',
  ])('[B08] takes %j', (header) => {
    expect(isJsonContentType(header)).toBe(true);
  });

  it.each([
    undefined,
    '',
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json-patch+json',
    'application/vnd.api+json',
    'application/jsonp',
    'application/json-seq',
    'application/javascript',
    'application/x-json',
    'xapplication/json',
    'application/ json',
    'application /json',
    'application/json text/plain',
    'application/json, text/plain',
    'text/plain; application/json',
    'application/json; charset=utf-16',
    'application/json; charset=iso-8859-1',
    'application/json; charset="utf-16le"',
    'application/json; charset=utf-7',
    'application/json; charset=utf-88',
    'application/json; charset=',
    '*/*',
    'application/*',
    'application\\json',
    'application/json\u0000',
  ])('[B08] refuses %j', (header) => {
    expect(isJsonContentType(header)).toBe(false);
  });
});
