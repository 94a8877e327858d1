// What a gateway in the process of a test is made of. `bundled-fixtures.ts` puts it in one file, which a worker loads in a
// tenth of the time that the files of `src` take.
export { startGateway } from '../../src/app/gateway.ts';
export { readConfiguration } from '../../src/config/config.ts';
export { renderIssue } from '../../src/config/issues.ts';
export { logParts, readLogLevels } from '../../src/core/ops/log/log-parts.ts';
export { features } from '../../src/features.ts';
