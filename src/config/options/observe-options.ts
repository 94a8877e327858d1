import * as z from 'zod/mini';
import { type LogLevelsFault, logLevels, logParts, readLogLevels } from '../../core/ops/log/log-parts.ts';
import { nearestName } from '../../core/util/text/nearest-name.ts';
import { choice, file, optionalText, text, turnedOn } from './option-kinds.ts';

const levels = z.string({ error: 'must be a level such as info, or levels per part such as info,store=debug' }).check(
  z.superRefine((value, context) => {
    const read = readLogLevels(value);
    if (!read.ok) context.addIssue({ code: 'custom', message: explain(read.fault, value.includes(',')) });
  }),
);

/** Describes the fault and the position of its item. Like any value, the item itself is not repeated. */
function explain({ index, wrong, name }: LogLevelsFault, isOneOfSeveral: boolean): string {
  const item = isOneOfSeveral ? `item ${index + 1} ` : '';
  if (wrong === 'repeated') return `${item}sets a level a second time; remove one of the two`;
  const [what, known] = wrong === 'part' ? (['part', logParts] as const) : (['level', logLevels] as const);
  const nearest = nearestName(name, known);
  const hint = nearest === undefined ? '' : `; did you mean ${nearest}?`;
  return `${item}names an unknown ${what}${hint} (known ${what}s: ${known.join(', ')}; example: info,store=debug)`;
}

const item = `\\s*((${logParts.join('|')})=)?(${logLevels.join('|')})\\s*`;

/** The option for the levels of the log. */
const logLevelOption = text(
  'info',
  levels,
  `Minimum level, such as warn or info,store=debug. The levels are ${logLevels.join(', ')}.`,
  {
    short: '--log-level',
    otherFlags: ['--verbose', '--debug', '--quiet', '--log'],
    choices: logLevels,
    pattern: `^${item}(,${item})*$`,
  },
);

/** The branch `observe`: the log, the audit log, metrics, and what goes to a collector. */
export const observeOptions = {
  logLevel: logLevelOption,
  logFormat: choice(
    ['auto', 'json', 'pretty'],
    'Log format: json, or pretty for people. auto: pretty on a terminal, otherwise json.',
  ),
  audit: optionalText(
    file,
    'Destination of the audit log: stdout, stderr or a file. The log has one JSON line per request, without content. SIGHUP reopens the file.',
  ),
  toolMetrics: turnedOn(
    'Count the calls of each tool in metrics: the names that a server lists, at most 100 for each server. All other names count as other.',
  ),
  otlpLogs: choice(
    ['log', 'audit', 'all', 'none'],
    'What goes to the OpenTelemetry collector as logs, if OTEL_EXPORTER_OTLP_ENDPOINT names one: the lines of the log, the records of the audit log, or both (all).',
  ),
  auditChain: turnedOn(
    'Chain the audit records: each one contains the hash of the one before, so that mcp-gangway audit verify finds changes.',
  ),
  showContents: turnedOn(
    'Show message contents on the status page, shortened and without anything that looks like a credential. Use this option only on a gateway that nobody else uses.',
  ),
};

/** True if log lines, or audit records, go to the collector. */
export const sendsLog = (otlpLogs: string): boolean => ['log', 'all'].includes(otlpLogs);
export const sendsAudit = (otlpLogs: string): boolean => ['audit', 'all'].includes(otlpLogs);
