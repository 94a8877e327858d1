import { setTimeout as sleep } from 'node:timers/promises';
import { isSameProcess, listProcesses, type ProcessState } from '../processes/process-identity.ts';
import type { GroupJournalContents } from './journal-format.ts';
import { fileErrorCode } from './state-directory.ts';

/** A process group that a gateway noted and that still has members which run. */
export interface StaleGroup {
  readonly pid: number;
  /** Members of which it is known that they descend from the gateway, as pid and start time. */
  readonly known: Set<string>;
}

/** What became of groups; pids. */
export interface KilledGroups {
  readonly ended: readonly number[];
  readonly killed: readonly number[];
  readonly survived: readonly number[];
  readonly unknown: readonly number[];
}

const killGraceMs = 1_000;
const firstPollMs = 5;
const maxPollMs = 250;
/** From here on every process is looked at, so that zombies which nobody reaps do not count for ever. */
const lookFromPollMs = 40;

/**
 * Which of the noted groups are left, and of which it cannot be known. Pure; a number that another process has got
 * meanwhile is in neither, since the kernel gives no number away while a group or a session bears it.
 * @param ownGroup the caller's own, which is never touched
 */
export function findStaleGroups(
  notes: GroupJournalContents,
  processes: readonly ProcessState[],
  ownGroup: number,
): { readonly groups: StaleGroup[]; readonly unknown: number[] } {
  const groups: StaleGroup[] = [];
  const unknown: number[] = [];
  for (const leader of notes.groups) {
    const members = membersOf(leader.pid, processes);
    const now = processes.find(({ pid }) => pid === leader.pid);
    if (members.length === 0 || (now !== undefined && !isSameProcess(leader, now))) continue;
    // Without its leader a group of this number can be one that came later. But each of ours was started as a session of
    // its own, and a member that is in that session since the gateway lived has kept the number in use from then on.
    const isOurs =
      now !== undefined ||
      members.some(({ session, startTicks }) => session === leader.pid && startTicks <= notes.aliveTicks);
    if (isOurs && leader.pid !== ownGroup) groups.push({ pid: leader.pid, known: new Set(members.map(keyOf)) });
    else unknown.push(leader.pid);
  }
  return { groups, unknown };
}

/** SIGTERM to all of them, then SIGKILL to what is left after the grace. Resolves as soon as nothing is left. */
export async function killStaleGroups(groups: readonly StaleGroup[], terminateGraceMs: number): Promise<KilledGroups> {
  signal(groups, 'SIGTERM');
  const stubborn = await leftAfter(terminateGraceMs, groups);
  // Whoever is in a group by now with nobody of those that were known could be anybody.
  const unknown = stubborn.length === 0 ? [] : strangersOf(stubborn);
  const toKill = stubborn.filter((group) => !unknown.includes(group));
  signal(toKill, 'SIGKILL');
  const survived = await leftAfter(killGraceMs, toKill);
  return {
    ended: pidsOf(groups.filter((group) => !stubborn.includes(group))),
    killed: pidsOf(toKill.filter((group) => !survived.includes(group))),
    survived: pidsOf(survived),
    unknown: pidsOf(unknown),
  };
}

async function leftAfter(graceMs: number, groups: readonly StaleGroup[]): Promise<readonly StaleGroup[]> {
  const end = performance.now() + graceMs;
  let left = groups.filter(exists);
  // They are not our children, so nobody tells of their end: there is nothing but to look.
  for (let pollMs = firstPollMs; left.length > 0 && performance.now() < end; pollMs = Math.min(2 * pollMs, maxPollMs)) {
    await sleep(Math.min(pollMs, Math.max(0, end - performance.now())));
    left = left.filter(exists);
    if (pollMs >= lookFromPollMs && left.length > 0) {
      const processes = listProcesses();
      left = left.filter((group) => learnMembers(group, processes).length > 0);
    }
  }
  return left;
}

/** The members that run; those that a known member may have started since the last look are known from now on. */
function learnMembers({ pid, known }: StaleGroup, processes: readonly ProcessState[]): readonly ProcessState[] {
  const members = membersOf(pid, processes);
  if (members.some((member) => known.has(keyOf(member)))) for (const member of members) known.add(keyOf(member));
  return members;
}

function strangersOf(groups: readonly StaleGroup[]): StaleGroup[] {
  const processes = listProcesses();
  return groups.filter((group) => {
    const members = learnMembers(group, processes);
    return members.length > 0 && !members.some((member) => group.known.has(keyOf(member)));
  });
}

const membersOf = (group: number, processes: readonly ProcessState[]): ProcessState[] =>
  processes.filter((found) => found.group === group && !found.isZombie);

const keyOf = ({ pid, startTicks }: ProcessState): string => `${pid} ${startTicks}`;

const pidsOf = (groups: readonly StaleGroup[]): number[] => groups.map(({ pid }) => pid);

const exists = ({ pid }: StaleGroup): boolean => send(pid, 0);

function signal(groups: readonly StaleGroup[], name: NodeJS.Signals): void {
  for (const { pid } of groups) send(pid, name);
}

/** False if nothing is there. What we may not signal is there, and is told as a survivor. */
function send(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, name);
    return true;
  } catch (error) {
    return fileErrorCode(error) === 'EPERM';
  }
}
