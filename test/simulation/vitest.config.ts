import { defineConfig } from 'vitest/config';
import { ownPackages } from '../support/own-packages.ts';
import { mutants, withMutant } from './mutants.ts';
import { visibleFields } from './visible-fields.ts';

/** `node test/run.mjs simulate` tries many seeds. `node test/run.mjs simulate-mutants` puts each mutant into the code and has to find it. */
// biome-ignore lint/style/noDefaultExport: vitest wants one
export default defineConfig({
  test: {
    projects: [
      {
        resolve: { alias: ownPackages },
        plugins: [visibleFields()],
        test: { name: 'simulation', include: ['test/simulation/simulation.test.ts'] },
      },
      ...mutants.map((mutant) => ({
        resolve: { alias: ownPackages },
        plugins: [withMutant(mutant), visibleFields()],
        test: {
          name: `mutant ${mutant.name}`,
          include: ['test/simulation/mutant.test.ts'],
          env: { SIMULATION_MUTANT: mutant.name },
        },
      })),
    ],
  },
});
