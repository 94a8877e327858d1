import { renderCommandLine } from './command-line.ts';
import { renderConfiguration } from './configuration.ts';
import { renderErrors } from './errors.ts';
import { renderMetrics } from './metrics.ts';

/**
 * The generated pages below `docs/reference`. `npm run docs` writes them; `test/app/reference.test.ts` compares them.
 */
export const pages: ReadonlyMap<string, () => string> = new Map([
  ['command-line.md', renderCommandLine],
  ['configuration.md', renderConfiguration],
  ['errors.md', renderErrors],
  ['metrics.md', renderMetrics],
]);
