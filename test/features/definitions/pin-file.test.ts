import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readToolDefinition } from '../../../src/core/protocol/tool-definition.ts';
import { openPins, preparePins } from '../../../src/features/definitions/pin-file.ts';

const command = 'mcp-gangway pin s --config g.json';

function writePins(...given: Parameters<typeof preparePins>) {
  const { write, ...changes } = preparePins(...given);
  write();
  return changes;
}

const item = (name: string, tool: object) => ({ name, text: Buffer.from(JSON.stringify({ name, ...tool })) });

function createFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-pins-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'pins.json');
}

test('a tool is allowed as long as each member that defines it is the pinned one', () => {
  const path = createFile();
  const annotations = { readOnlyHint: true };
  const pinned = { description: 'a', inputSchema: { type: 'object', properties: { x: {}, y: {} } }, annotations };
  writePins(path, 's', [item('t', pinned)]);
  const pins = openPins(path, command);
  expect(pins.allows(item('t', pinned))).toBe(true);
  const reordered = { type: 'object', properties: { y: {}, x: {} } };
  expect(pins.allows(item('t', { ...pinned, inputSchema: reordered, _meta: { at: 1 } }))).toBe(true);
  expect(pins.hides('t')).toBe(false);
  for (const change of [
    { description: 'b' },
    { title: 'T' },
    { outputSchema: {} },
    { annotations: {} },
    { inputSchema: { type: 'object' } },
  ])
    expect([change, pins.allows(item('t', { ...pinned, ...change }))]).toEqual([change, false]);
  expect(pins.hides('t')).toBe(true);
  expect(pins.allows(item('u', pinned))).toBe(false);
});

test('the file has no text of a tool; one that is not valid is refused', () => {
  const path = createFile();
  expect(writePins(path, 's', [item('t', { description: 'canary' })])).toEqual({
    pinned: 1,
    added: ['t'],
    removed: [],
    changed: [],
    tooLong: [],
  });
  expect(readFileSync(path, 'utf8')).not.toContain('canary');
  expect(writePins(path, 's', [item('u', {})])).toMatchObject({ added: ['u'], removed: ['t'] });
  for (const text of ['', '[]', '{"tools":[]}', '{"tools":{"t":{"name":"x"}}}', '{"tools":{"t":{"title":1}}}']) {
    writeFileSync(path, text);
    expect(() => openPins(path, command)).toThrow(/not valid/);
  }
});

test('the error of a missing file has its whole path and the whole command; comparing alone writes nothing', () => {
  const path = createFile();
  expect(preparePins(path, 's', [item('t', {})])).toMatchObject({ added: ['t'] });
  const expected = `The pin file ${path} does not exist. Write it with: ${command}`;
  expect(() => openPins(path, command)).toThrow(expected);
  expect(() => openPins(relative(process.cwd(), path), command)).toThrow(expected);
});

test('[P8] a tool that is no object, or is very long, has no definition', () => {
  expect(readToolDefinition(Buffer.from('[]'))).toBeUndefined();
  expect(readToolDefinition(Buffer.from(`{"description":"${'x'.repeat(300_000)}"}`))).toBeUndefined();
  expect(readToolDefinition(Buffer.from('{}'))).toEqual({});
  const long = item('long', { description: 'x'.repeat(300_000) });
  expect(preparePins(createFile(), 's', [item('t', {}), long])).toMatchObject({ pinned: 1, tooLong: ['long'] });
});
