import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { setProcessGroupListener } from '../../../../src/backend/stdio/processes/process-group.ts';
import { ownIdentity, readProcess } from '../../../../src/backend/stdio/processes/process-identity.ts';
import {
  createGroupJournal,
  type GroupJournalOptions,
} from '../../../../src/backend/stdio/stale-groups/group-journal.ts';
import { parseJournal } from '../../../../src/backend/stdio/stale-groups/journal-format.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { openChild } from '../harness.ts';

const self = ownIdentity();

let parent = '';
let directory = '';
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'gangway-notes-'));
  directory = join(parent, 'state');
});
afterEach(() => {
  setProcessGroupListener({ started: () => undefined, ended: () => undefined });
  rmSync(parent, { recursive: true, force: true });
});

describe.runIf(self !== undefined)('the notes of a gateway', () => {
  const faults: string[] = [];
  afterEach(() => void faults.splice(0));

  const create = (options: Partial<GroupJournalOptions> = {}) =>
    createGroupJournal({
      directory,
      self: self as NonNullable<typeof self>,
      onUnable: (why) => faults.push(why),
      ...options,
    });
  const path = () => join(directory, readdirSync(directory)[0] ?? '');
  const read = () => parseJournal(readFileSync(path(), 'latin1'));

  it('P10: name each group from its start to its end, in a file of this user alone', async () => {
    const notes = create();
    setProcessGroupListener(notes);
    expect(existsSync(directory)).toBe(false);
    const [one, other] = [openChild('echo'), openChild('echo')];
    const ids = [one, other].map(({ backend }) => backend.pid as number);
    expect(read()?.groups.map(({ pid }) => pid)).toEqual(ids);
    expect(read()?.groups[0]?.startTicks).toBe(readProcess(ids[0] as number)?.startTicks);
    expect(read()?.gateway).toEqual(self);
    expect([statSync(directory).mode & 0o777, statSync(path()).mode & 0o777]).toEqual([0o700, 0o600]);
    await one.backend.close();
    expect(read()?.groups.map(({ pid }) => pid)).toEqual(ids.slice(1));
    await other.backend.close();
    expect(read()?.groups).toEqual([]);
    notes.close();
    expect(readdirSync(directory)).toEqual([]);
    expect(faults).toEqual([]);
  });

  it('P8: are written anew instead of growing for ever', () => {
    const notes = create({ rewriteBytes: 400 });
    notes.started(process.ppid);
    for (let n = 0; n < 1_000; n++) {
      notes.started(process.pid);
      expect(statSync(path()).size).toBeLessThanOrEqual(400);
      expect(read()?.groups).toHaveLength(2);
      notes.ended(process.pid);
    }
    expect(read()?.groups).toEqual([{ pid: process.ppid, startTicks: readProcess(process.ppid)?.startTicks }]);
    expect(readdirSync(directory)).toHaveLength(1);
    notes.close();
  });

  it('tell from time to time that the gateway lives, in place', async () => {
    const notes = create({ aliveMs: 5 });
    notes.started(process.pid);
    const { size } = statSync(path());
    const before = read()?.aliveTicks ?? 0;
    await waitFor(() => (read()?.aliveTicks ?? 0) > before + 1);
    expect(read()?.groups).toHaveLength(1);
    expect(statSync(path()).size).toBe(size);
    notes.close();
  });

  it('that cannot be written are told once, and harm nothing', () => {
    const notes = create({ directory: join(parent, 'no', 'such') });
    notes.started(process.pid);
    notes.started(process.ppid);
    notes.ended(process.pid);
    notes.close();
    expect(faults).toEqual([expect.stringContaining('cannot be created (ENOENT)')]);
  });

  it('survive that somebody removes their directory', () => {
    const notes = create({ rewriteBytes: 300 });
    notes.started(process.ppid);
    rmSync(directory, { recursive: true });
    for (let n = 0; n < 20; n++) {
      notes.started(process.pid);
      notes.ended(process.pid);
    }
    expect(read()?.groups).toHaveLength(1);
    notes.close();
    expect(faults).toEqual([]);
  });
});
