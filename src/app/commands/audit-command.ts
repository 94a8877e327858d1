import { type Features, needed } from '../features/gateway-features.ts';
import type { ChainNote } from '../features/telemetry.ts';
import { failed } from './exit-codes.ts';
import type { Outcome } from './servers-command.ts';

/** Checks the chain of audit files (`mcp-gangway audit verify`). */
export async function verifyAudit(files: readonly string[], features: Features): Promise<Outcome> {
  let report: Awaited<ReturnType<ReturnType<typeof auditOf>['verify']>>;
  try {
    report = await auditOf(features).verify(files);
  } catch (cause) {
    return { stderr: `mcp-gangway: ${(cause as Error).message}\n`, exitCode: failed };
  }
  const { lines, last, broken, notes } = report;
  const noted = notes.map((note) => `${describe(note)}\n`).join('');
  if (broken !== undefined) return { stdout: `${noted}${describe(broken)}\nThe chain is broken.\n`, exitCode: failed };
  const end = last === null ? '' : ` The hash of the last line is ${last}.`;
  return { stdout: `${noted}The chain of ${lines} ${lines === 1 ? 'line' : 'lines'} is whole.${end}\n`, exitCode: 0 };
}

const auditOf = ({ audit }: Features) => needed(audit, 'audit verify');

const describe = ({ file, line, text }: ChainNote): string => `${file}:${line}: ${text}`;
