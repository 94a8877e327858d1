import type { ProcessIdentity, ProcessNamespace } from '../processes/process-identity.ts';

/**
 * The content of a journal file. The first line names its gateway; each line after it records that a group started or
 * ended. A group is only the leader's pid and start time, so the file holds no secrets:
 *
 *     mcp-gangway-groups 1 000000123456 4711 100000 0b9a…-… pid:[4026531836]
 *     + 4712 100010
 *     - 4712
 */
export interface GroupJournalContents {
  /** The gateway that wrote the file. */
  readonly gateway: ProcessIdentity & ProcessNamespace;
  /** The gateway lived at least until then. */
  readonly aliveTicks: number;
  /** The leaders of the groups that had started and not ended. */
  readonly groups: readonly ProcessIdentity[];
}

/** More than 600,000 groups: a larger file is not ours, and reading it would only fill the memory. */
export const maxJournalBytes = 16 * 1024 * 1024;

const magic = 'mcp-gangway-groups 1 ';

/** The only field that is overwritten, so it has a fixed position and length. */
const aliveDigits = 12;
export const aliveOffset = magic.length;

const headerPattern = /^mcp-gangway-groups 1 (\d{12}) (\d{1,10}) (\d{1,15}) ([0-9a-f-]{1,64}) (pid:\[\d{1,20}\])$/;
const startedPattern = /^\+ (\d{1,10}) (\d{1,15})$/;
const endedPattern = /^- (\d{1,10})$/;

export const aliveText = (ticks: number): string => String(ticks).padStart(aliveDigits, '0');

export const startedLine = ({ pid, startTicks }: ProcessIdentity): string => `+ ${pid} ${startTicks}\n`;

export const endedLine = (pid: number): string => `- ${pid}\n`;

/** Returns the text of a whole file. */
export const formatJournal = ({ gateway, aliveTicks, groups }: GroupJournalContents): string => {
  const { pid, startTicks, bootId, pidNamespace } = gateway;
  const header = `${magic}${aliveText(aliveTicks)} ${pid} ${startTicks} ${bootId} ${pidNamespace}\n`;
  return header + groups.map(startedLine).join('');
};

/**
 * Parses a file. Undefined if any part of it has an unknown format: then nothing in it can be trusted. Only the last
 * line may be incomplete, as after a full disk.
 */
export function parseJournal(text: string): GroupJournalContents | undefined {
  const [header = '', ...lines] = text.split('\n');
  const [, alive, pid, startTicks, bootId = '', pidNamespace = ''] = headerPattern.exec(header) ?? [];
  if (alive === undefined || lines.length === 0) return undefined;
  lines.pop(); // empty, or incomplete
  const gateway = { pid: Number(pid), startTicks: Number(startTicks), bootId, pidNamespace };
  let aliveTicks = Number(alive);
  const groups = new Map<number, ProcessIdentity>();
  for (const line of lines) {
    const [, ended] = endedPattern.exec(line) ?? [];
    const [, started, at] = startedPattern.exec(line) ?? [];
    const leader = Number(ended ?? started ?? 0);
    // 0 and 1 would mean our own group and every process
    if (leader <= 1) return undefined;
    if (started === undefined) groups.delete(leader);
    else groups.set(leader, { pid: leader, startTicks: Number(at) });
    aliveTicks = Math.max(aliveTicks, Number(at ?? 0)); // the gateway lived when it started that group
  }
  return { gateway, aliveTicks, groups: [...groups.values()] };
}

const namePattern = /^(\d{1,10})-(\d{1,15})(?:\.of-\d{1,10}-\d{1,15})?\.groups$/;

/** Returns the name of a gateway's own file, or of a dead gateway's file that another one has claimed. */
export const journalFileName = (owner: ProcessIdentity, claimedFrom?: ProcessIdentity): string =>
  `${owner.pid}-${owner.startTicks}${claimedFrom ? `.of-${claimedFrom.pid}-${claimedFrom.startTicks}` : ''}.groups`;

/**
 * Returns the gateway that owns a file of this name; undefined for other files. No other gateway touches the file while
 * it lives.
 */
export function gatewayOfJournal(name: string): ProcessIdentity | undefined {
  const [, pid, startTicks] = namePattern.exec(name) ?? [];
  return pid === undefined ? undefined : { pid: Number(pid), startTicks: Number(startTicks) };
}
