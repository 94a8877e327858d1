import assert from 'node:assert/strict';
import fc from 'fast-check';
import { replaceParts, spliceId, valueAt } from '../../src/core/protocol/json.ts';
import { findRemovals, putMembers, withoutMember } from '../../src/core/protocol/message/edit-members.ts';
import { type Message, memberRange, readOne } from '../../src/core/protocol/message/message.ts';
import { renumber, restoreId, restoreToken } from '../../src/core/protocol/modern/renumber.ts';
import { jsonText, keyText, space } from '../support/json-texts.ts';
import { corpusOf, mutated } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';

const id = fc.oneof(
  fc.constantFrom('0', '-7', '1.0', '1e0', '"1"', '""', '"\\u0031"', '"ü😀"', '9007199254740991'),
  fc.string({ maxLength: 10 }).map((text) => JSON.stringify(text)),
);

/** Requests in any order of members, with white space, with and without params and _meta. */
const requestText = fc
  .tuple(
    fc.array(keyText, { maxLength: 2 }),
    jsonText.value,
    jsonText.object,
    id,
    id,
    space,
    fc.nat({ max: 23 }),
    fc.nat({ max: 3 }),
  )
  .map(([keys, value, object, ownId, token, gap, order, shape]) => {
    const more = keys.map((key) => `${key}${gap}:${gap}${value}`);
    const meta = shape < 2 ? [`"_meta":${gap}{${gap}"progressToken":${gap}${token}${gap},"x":${object}}`] : [];
    const params =
      shape < 3 ? [`"params"${gap}:{${gap}${[...more, ...meta, `"z":${value}`].join(`${gap},`)}${gap}}`] : [];
    const members = ['"jsonrpc":"2.0"', `"id"${gap}:${gap}${ownId}`, '"method":"m"', ...params, ...more];
    const [moved] = members.splice(order % members.length, 1);
    return `{${gap}${[moved, ...members].join(`${gap},${gap}`)}${gap}}`;
  });
const requests = fc.oneof(
  requestText.map((text) => Buffer.from(text)),
  mutated(corpusOf('json')),
);

const parsed = (text: Buffer): Record<string, unknown> => JSON.parse(text.toString()) as Record<string, unknown>;

const ids = createFuzzer({
  name: 'ids in texts: nothing but the id changes, and it comes back as it was',
  share: 8,
  cases: fc.tuple(requests, fc.oneof(fc.maxSafeNat(), fc.string({ maxLength: 8 }))),
  check([bytes, renamed]) {
    const request = readOne(Buffer.from(bytes));
    if (request?.kind !== 'request') return;
    const place = memberRange(request, 'message', 'id');
    assert.ok(place !== undefined);
    const by = JSON.stringify(renamed);
    const spliced = spliceId(request.text, by);
    const [before, after] = [request.text.subarray(0, place.start), request.text.subarray(place.end)];
    assert.ok(spliced.equals(Buffer.concat([before, Buffer.from(by), after])));
    const out = renumber(request, renamed);
    const there = readOne(out.request.text) as Message;
    assert.equal(there.id, renamed);
    assert.equal(there.progressToken, request.progressToken === undefined ? undefined : renamed);
    const withId = restoreId(there, out);
    assert.equal(withId.id, request.id);
    const tokenPlace = out.tokenText === undefined ? undefined : memberRange(withId, 'meta', 'progressToken');
    const { text } = withId;
    const back = tokenPlace ? replaceParts(text, [{ ...tokenPlace, by: out.tokenText as string }]) : text;
    assert.ok(back.equals(request.text));
    if (out.tokenText !== undefined) {
      const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${by},"progress":1}}`;
      const told = restoreToken(readOne(Buffer.from(progress)) as Message, out.clientToken, out.tokenText);
      assert.equal(told.progressToken, request.progressToken);
      assert.equal((readOne(told.text) as Message).progressToken, request.progressToken);
    }
  },
});

const names = fc.constantFrom('name', 'z', 'x', 'progressToken', '_meta', 'new', '__proto__', '', 'a"b', 'constructor');

const members = createFuzzer({
  name: 'members in texts: put in and taken out, and all others stay as they are',
  share: 8,
  cases: fc.tuple(
    requests,
    fc.constantFrom('params', 'meta'),
    fc.uniqueArray(names, { maxLength: 3 }),
    fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  ),
  check([bytes, level, keys, value]) {
    const message = readOne(Buffer.from(bytes));
    if (message === undefined) return;
    const isNewMeta = level === 'meta' && message.memberRanges.meta === undefined;
    // What is no object there would stand beside the new one, or be replaced by it.
    if (isNewMeta && memberRange(message, 'params', '_meta') !== undefined) return;
    if (memberRange(message, 'message', 'params') !== undefined && message.memberRanges.params === undefined) return;
    const put = putMembers(
      message,
      level,
      keys.map((key) => [key, value]),
    );
    if (keys.length === 0) return assert.deepEqual(put, message.text);
    const expected = parsed(message.text);
    const path = level === 'params' ? ['params'] : ['params', '_meta'];
    let object = expected;
    for (const key of path) {
      if (!Object.hasOwn(object, key)) object[key] = {};
      object = object[key] as Record<string, unknown>;
    }
    for (const key of keys) {
      Object.defineProperty(object, key, {
        value: JSON.parse(value),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    assert.deepEqual(parsed(put), expected);
    const again = readOne(put) as Message;
    const removals = findRemovals(again, level, keys).map((place) => ({ ...place, by: '' }));
    for (const key of keys) delete object[key];
    assert.deepEqual(parsed(replaceParts(again.text, removals)), expected);
    let one = put;
    for (const key of keys) one = withoutMember(one, [...path, key]);
    assert.deepEqual(parsed(one), expected);
    for (const key of keys) assert.equal(valueAt(one, [...path, key]), undefined);
  },
});

export const fuzzers = [ids, members];
