import { configurationSchema } from '../../src/config/tree/json-schema.ts';
import { renderChart, renderValues } from './chart.ts';
import { renderCommandLine } from './command-line.ts';
import { renderConfiguration, renderOptions } from './configuration.ts';
import { renderErrors } from './errors.ts';
import { renderExtensions } from './extensions.ts';
import { renderManPage } from './man-page.ts';
import { renderMetrics } from './metrics.ts';

/**
 * The generated pages below `docs/reference`. `npm run docs` writes them; `test/app/reference.test.ts` compares them.
 */
export const pages: ReadonlyMap<string, () => string> = new Map([
  ['chart.md', renderChart],
  ['command-line.md', renderCommandLine],
  ['configuration.md', renderConfiguration],
  ['configuration.schema.json', () => `${JSON.stringify(configurationSchema(), undefined, 2)}\n`],
  ['errors.md', renderErrors],
  ['extensions.md', renderExtensions],
  ['mcp-gangway.1', renderManPage],
  ['metrics.md', renderMetrics],
  ['options.md', renderOptions],
]);

/** The files elsewhere in which `npm run docs` renews comments. */
export const commentedFiles: ReadonlyMap<string, () => string> = new Map([
  ['deploy/helm/mcp-gangway/values.yaml', renderValues],
]);
