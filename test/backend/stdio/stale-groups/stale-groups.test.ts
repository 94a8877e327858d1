import { describe, expect, it } from 'vitest';
import type { ProcessState } from '../../../../src/backend/stdio/processes/process-identity.ts';
import { findStaleGroups } from '../../../../src/backend/stdio/stale-groups/stale-groups.ts';

const gateway = { pid: 10, startTicks: 100, bootId: 'b', pidNamespace: 'pid:[1]' };
const notes = { gateway, aliveTicks: 500, groups: [{ pid: 20, startTicks: 200 }] };

const leader: ProcessState = { pid: 20, startTicks: 200, group: 20, session: 20, isZombie: false, cpuMs: 0 };
const member: ProcessState = { pid: 21, startTicks: 300, group: 20, session: 20, isZombie: false, cpuMs: 0 };

/** What is found among these processes: the groups to end, and those that are unknown. */
function find(processes: readonly ProcessState[], ownGroup = 5) {
  const { groups, unknown } = findStaleGroups(notes, processes, ownGroup);
  return [groups.map(({ pid }) => pid), unknown];
}

describe('what is left of a noted group', () => {
  it.each<[string, ProcessState[], number[], number[]]>([
    ['nothing', [], [], []],
    ['its leader', [leader], [20], []],
    ['its leader and a member', [leader, member], [20], []],
    ['a zombie of its leader', [{ ...leader, isZombie: true }], [], []],
    ['a zombie of its leader, and a member', [{ ...leader, isZombie: true }, member], [20], []],
    ['a member that the gateway saw', [member], [20], []],
    ['such a member and a later one', [member, { ...member, pid: 22, startTicks: 900 }], [20], []],
    ['a member that can be of a later group', [{ ...member, startTicks: 501 }], [], [20]],
    ['a member of another session', [{ ...member, session: 3 }], [], [20]],
    ['another process with the pid of its leader', [{ ...leader, startTicks: 201 }], [], []],
    ['another process with that pid, and its group', [{ ...leader, startTicks: 201 }, member], [], []],
    ['others', [{ ...leader, pid: 30, group: 30, session: 30 }], [], []],
  ])('P10: %s', (_, processes, groups, unknown) => {
    expect(find(processes)).toEqual([groups, unknown]);
  });

  it('P10: is never the group of who asks', () => {
    expect(find([leader, member], 20)).toEqual([[], [20]]);
  });
});
