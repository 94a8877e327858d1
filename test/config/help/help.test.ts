import { describe, expect, it } from 'vitest';
import { renderHelp } from '../../../src/config/help/help.ts';
import { flagOf } from '../../../src/config/options/option-names.ts';
import { globalOptions, serverOptions } from '../../../src/config/options/options.ts';

/** Only URLs cannot be wrapped. */
const isTooLong = (line: string): boolean => line.length > 80 && !line.includes('https://');

describe('--help', () => {
  it('fits a screen of 80 columns and 40 lines', () => {
    const lines = renderHelp().trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(lines.filter(isTooLong)).toEqual([]);
  });

  it.each(['all', 'check', 'health', 'key'] as const)('on %s has its own text of 80 columns', (topic) => {
    const lines = renderHelp(topic).trimEnd().split('\n');
    expect(lines.filter(isTooLong)).toEqual([]);
    expect(lines.join('\n')).toContain(
      { all: '--admin-port', check: '--json', health: '--ready', key: '--api-keys' }[topic],
    );
  });

  it('on all options has each with what it does, by itself on a line or beside its name', () => {
    const lines = renderHelp('all').split('\n');
    for (const [key, { description }] of Object.entries({ ...globalOptions, ...serverOptions })) {
      const at = lines.findIndex((line) => line.trimStart().split(' ')[0] === flagOf(key));
      const shown = `${lines[at]} ${lines[at + 1]}`;
      expect(shown).toContain(description.split(' ').slice(0, 3).join(' '));
    }
  });

  it('shows the options that the table marks, and where the others are', () => {
    const help = renderHelp();
    for (const [key, { inHelp }] of Object.entries({ ...globalOptions, ...serverOptions })) {
      expect(help.includes(`${flagOf(key)} `)).toBe(inHelp);
    }
    for (const more of ['--config  ', '--help all', '/docs/README.md']) expect(help).toContain(more);
  });
});
