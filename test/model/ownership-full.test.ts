import { expect, it } from 'vitest';
import { configurations, run, say } from './configurations.ts';

const shortened = configurations.filter(({ fewer }) => fewer !== undefined);

it.each(shortened)('$name, with all faults: holds in every state', { timeout: 120_000 }, (configuration) => {
  const { states, transitions, violation } = run(configuration);
  say(`model: ${configuration.name}: ${states} states, ${transitions} transitions`);
  expect(violation).toBeUndefined();
});
