import { type Features, needed } from '../features/gateway-features.ts';
import type { ChainNote } from '../features/telemetry.ts';
import { failed, type Outcome, printed, refused } from './outcome.ts';

/**
 * Checks the chain of audit files (`mcp-gangway audit verify`).
 * @param known the hash of the last line that an earlier check has printed
 */
export async function verifyAudit(
  files: readonly string[],
  known: string | undefined,
  features: Features,
): Promise<Outcome> {
  let report: Awaited<ReturnType<ReturnType<typeof auditOf>['verify']>>;
  try {
    report = await auditOf(features).verify(files, known);
  } catch (cause) {
    return refused((cause as Error).message);
  }
  const { lines, last, sinceKnown, broken, notes } = report;
  const noted = notes.map((note) => `${describe(note)}\n`).join('');
  if (broken !== undefined) return { stdout: `${noted}${describe(broken)}\nThe chain is broken.\n`, exitCode: failed };
  if (known !== undefined && sinceKnown === undefined)
    return {
      stdout: `${noted}No line has the hash of --last: the line that was the last one was changed, or the last lines were removed, or --last is from other files.\nThe chain is broken.\n`,
      exitCode: failed,
    };
  const sameAs = known === undefined ? '' : ` The line of --last is unchanged, and ${countOf(sinceKnown ?? 0)}.`;
  const end = last === null ? '' : ` The hash of the last line is ${last}.`;
  return printed(`${noted}The chain of ${lines} ${lines === 1 ? 'line' : 'lines'} is whole.${sameAs}${end}\n`);
}

const countOf = (lines: number): string =>
  lines === 0 ? 'no line follows' : lines === 1 ? '1 line follows' : `${lines} lines follow`;

const auditOf = ({ audit }: Features) => needed(audit, 'audit verify');

const describe = ({ file, line, text }: ChainNote): string => `${file}:${line}: ${text}`;
