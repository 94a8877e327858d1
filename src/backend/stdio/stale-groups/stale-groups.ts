import { setTimeout as sleep } from 'node:timers/promises';
import { errorCodeOf } from '../../../util/text/error-code.ts';
import { backoff } from '../../../util/timing/backoff.ts';
import { isSameProcess, listProcesses, type ProcessState } from '../processes/process-identity.ts';
import type { GroupJournalContents } from './journal-format.ts';

/** A process group that a gateway recorded and that still has running members. */
export interface StaleGroup {
  readonly pid: number;
  /** Members that are known to descend from the gateway, as pid and start time. */
  readonly known: Set<string>;
}

/** The groups by the way they ended, as pids. */
export interface KilledGroups {
  readonly ended: readonly number[];
  readonly killed: readonly number[];
  readonly survived: readonly number[];
  readonly unknown: readonly number[];
}

const killGraceMs = 1_000;
const pauseAfter = backoff({ firstMs: 5, maxMs: 250 });
/** From this pause on every process is read, so that zombies that nobody reaps do not count for ever. */
const listFromPollMs = 40;

/**
 * Finds the recorded groups that still exist, and those of unknown origin. Pure. A number that another process has got
 * meanwhile is in neither list, since the kernel reuses no number while a group or a session has it.
 * @param ownGroup the caller's own, which is never touched
 */
export function findStaleGroups(
  journal: GroupJournalContents,
  processes: readonly ProcessState[],
  ownGroup: number,
): { readonly groups: StaleGroup[]; readonly unknown: number[] } {
  const groups: StaleGroup[] = [];
  const unknown: number[] = [];
  for (const leader of journal.groups) {
    const members = findMembers(leader.pid, processes);
    const now = processes.find(({ pid }) => pid === leader.pid);
    if (members.length === 0 || (now !== undefined && !isSameProcess(leader, now))) continue;
    // Without its leader, a group with this number can be a later one. But each of our groups was started in a session
    // of its own. A member that has been in that session since the gateway lived has kept the number in use from then
    // on.
    const isOurs =
      now !== undefined ||
      members.some(({ session, startTicks }) => session === leader.pid && startTicks <= journal.aliveTicks);
    if (isOurs && leader.pid !== ownGroup) groups.push({ pid: leader.pid, known: new Set(members.map(toKey)) });
    else unknown.push(leader.pid);
  }
  return { groups, unknown };
}

/** Sends SIGTERM to all groups, and SIGKILL to those left after the grace. Resolves as soon as no process is left. */
export async function killStaleGroups(groups: readonly StaleGroup[], terminateGraceMs: number): Promise<KilledGroups> {
  signal(groups, 'SIGTERM');
  const stubborn = await waitForSurvivors(terminateGraceMs, groups);
  // A group in which no known member is left could be anybody's.
  const unknown = stubborn.length === 0 ? [] : findStrangers(stubborn);
  const toKill = stubborn.filter((group) => !unknown.includes(group));
  signal(toKill, 'SIGKILL');
  const survived = await waitForSurvivors(killGraceMs, toKill);
  return {
    ended: toPids(groups.filter((group) => !stubborn.includes(group))),
    killed: toPids(toKill.filter((group) => !survived.includes(group))),
    survived: toPids(survived),
    unknown: toPids(unknown),
  };
}

async function waitForSurvivors(graceMs: number, groups: readonly StaleGroup[]): Promise<readonly StaleGroup[]> {
  const end = performance.now() + graceMs;
  let left = groups.filter(exists);
  // The groups are not our children, so the system does not report their end. They are polled.
  for (let polls = 0; left.length > 0 && performance.now() < end; polls += 1) {
    const pollMs = pauseAfter(polls);
    await sleep(Math.min(pollMs, Math.max(0, end - performance.now())));
    left = left.filter(exists);
    if (pollMs >= listFromPollMs && left.length > 0) {
      const processes = listProcesses();
      left = left.filter((group) => learnMembers(group, processes).length > 0);
    }
  }
  return left;
}

/** Returns the running members. If one of them is known, the others may be its children and become known, too. */
function learnMembers({ pid, known }: StaleGroup, processes: readonly ProcessState[]): readonly ProcessState[] {
  const members = findMembers(pid, processes);
  if (members.some((member) => known.has(toKey(member)))) for (const member of members) known.add(toKey(member));
  return members;
}

function findStrangers(groups: readonly StaleGroup[]): StaleGroup[] {
  const processes = listProcesses();
  return groups.filter((group) => {
    const members = learnMembers(group, processes);
    return members.length > 0 && !members.some((member) => group.known.has(toKey(member)));
  });
}

const findMembers = (group: number, processes: readonly ProcessState[]): ProcessState[] =>
  processes.filter((found) => found.group === group && !found.isZombie);

const toKey = ({ pid, startTicks }: ProcessState): string => `${pid} ${startTicks}`;

const toPids = (groups: readonly StaleGroup[]): number[] => groups.map(({ pid }) => pid);

const exists = ({ pid }: StaleGroup): boolean => send(pid, 0);

function signal(groups: readonly StaleGroup[], name: NodeJS.Signals): void {
  for (const { pid } of groups) send(pid, name);
}

/** False if there is no such group. A group that may not be signalled exists, and is reported as a survivor. */
function send(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, name);
    return true;
  } catch (error) {
    return errorCodeOf(error) === 'EPERM';
  }
}
