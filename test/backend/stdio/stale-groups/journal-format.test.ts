import { describe, expect, it } from 'vitest';
import {
  aliveOffset,
  aliveText,
  endedLine,
  formatJournal,
  type GroupJournalContents,
  gatewayOfJournal,
  journalFileName,
  parseJournal,
  startedLine,
} from '../../../../src/backend/stdio/stale-groups/journal-format.ts';

const gateway = { pid: 4711, startTicks: 100, bootId: '0b9a-12', pidNamespace: 'pid:[4026531836]' };
const groups = [
  { pid: 20, startTicks: 110 },
  { pid: 21, startTicks: 111 },
];
const notes: GroupJournalContents = { gateway, aliveTicks: 150, groups };
const text = formatJournal(notes);

describe('the file of notes', () => {
  it('is read as it was written', () => {
    expect(parseJournal(text)).toEqual(notes);
    expect(parseJournal(formatJournal({ ...notes, groups: [] }))).toEqual({ ...notes, groups: [] });
  });

  it('P12: has nothing but numbers of processes and of the host', () => {
    expect(text).toBe('mcp-gangway-groups 1 000000000150 4711 100 0b9a-12 pid:[4026531836]\n+ 20 110\n+ 21 111\n');
  });

  it('forgets groups that ended, and knows one that has the same number later', () => {
    const more = text + endedLine(20) + endedLine(21) + startedLine({ pid: 20, startTicks: 140 });
    expect(parseJournal(more)?.groups).toEqual([{ pid: 20, startTicks: 140 }]);
  });

  it('counts the gateway as living when it last said so, or started something', () => {
    const later = text.slice(0, aliveOffset) + aliveText(170) + text.slice(aliveOffset + aliveText(170).length);
    expect(parseJournal(later)?.aliveTicks).toBe(170);
    expect(parseJournal(text + startedLine({ pid: 22, startTicks: 180 }))?.aliveTicks).toBe(180);
  });

  it('may be cut short in its last line only', () => {
    for (let length = 0; length < text.length; length++) {
      const read = parseJournal(text.slice(0, length));
      const lines = text.slice(0, length).split('\n').length - 1;
      expect(read?.groups).toEqual(lines === 0 ? undefined : groups.slice(0, lines - 1));
    }
  });

  it.each([
    ['nothing', ''],
    ['another program', 'hello\n'],
    ['another version', text.replace('groups 1', 'groups 2')],
    ['a line that is none', `${text}kill 5\n`],
    ['an empty line', `${text}\n`],
    ['our own group', `${text}+ 0 5\n`],
    ['every process', `${text}+ 1 5\n`],
    ['a negative number', `${text}+ -5 5\n`],
    ['a number too long', `${text}+ 99999999999 5\n`],
    ['no start time', `${text}+ 5\n`],
    ['zeros, as after a power failure', '\0'.repeat(4_096)],
    ['a line break of another kind', text.replaceAll('\n', '\r\n')],
  ])('is not read at all if it has %s', (_, wrong) => {
    expect(parseJournal(wrong)).toBeUndefined();
  });
});

describe('the name of a file', () => {
  it('says who holds it: its gateway, or the one that took it', () => {
    const taker = { pid: 9, startTicks: 300 };
    expect(gatewayOfJournal(journalFileName(gateway))).toEqual({ pid: 4711, startTicks: 100 });
    expect(gatewayOfJournal(journalFileName(taker, gateway))).toEqual(taker);
    expect(journalFileName(taker, gateway)).toContain('4711');
  });

  it.each(['4711-100.groups.new', 'x', '4711.groups', '-4711-100.groups', '4711-100.groups\n', ''])(
    'is not that of a file of ours: %j',
    (name) => {
      expect(gatewayOfJournal(name)).toBeUndefined();
    },
  );
});
