import type { Logger } from 'pino';
import { type Environment, kernelVariable } from '../config/sources/environment-variables.ts';
import { chooseKernel, kernelModes } from '../protocol/json/kernel/choose-kernel.ts';

/**
 * Chooses the scanner of large JSON values, and logs the choice at `debug`. Throws an error for the operator if the
 * variable has another value, or if it requires a scanner that cannot run here.
 */
export function chooseScanner(environment: Environment, logger: Logger): void {
  const given = environment[kernelVariable] || 'auto';
  const mode = kernelModes.find((known) => known === given);
  if (mode === undefined) throw new Error(`${kernelVariable} must be ${kernelModes.join(', ')}, not ${given}`);
  const obstacle = chooseKernel(mode);
  if (obstacle === undefined) logger.debug('large JSON values are scanned with WebAssembly');
  else logger.debug({ why: obstacle.message }, 'large JSON values are scanned without WebAssembly, which takes longer');
}
