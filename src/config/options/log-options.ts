import * as z from 'zod/mini';
import { type LogLevelsFault, logLevels, logParts, readLogLevels } from '../../core/ops/log/log-parts.ts';
import { nearestName } from '../../core/util/text/nearest-name.ts';
import { text } from './option-kinds.ts';

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
export const logLevelOption = text(
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
