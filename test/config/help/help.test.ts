import { describe, expect, it } from 'vitest';
import { renderHelp } from '../../../src/config/help/help.ts';
import { flagsOf, options } from '../../../src/config/options/option-names.ts';

/** Only URLs cannot be wrapped. */
const isTooLong = (line: string): boolean => line.length > 80 && !line.includes('https://');

describe('--help', () => {
  it('fits a screen of 80 columns and 40 lines', () => {
    const lines = renderHelp().trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(40);
    expect(lines.filter(isTooLong)).toEqual([]);
  });

  it.each(['all', 'check', 'config', 'health', 'key', 'completion'] as const)(
    'on %s has its own text of 80 columns',
    (topic) => {
      const lines = renderHelp(topic).trimEnd().split('\n');
      expect(lines.filter(isTooLong)).toEqual([]);
      expect(lines.join('\n')).toContain(
        {
          all: '--admin-port',
          check: '--config-only',
          config: 'schema',
          health: '--ready',
          key: '--add',
          completion: 'fish',
        }[topic],
      );
    },
  );

  it('on all options has each with what it does, by itself on a line or beside its name', () => {
    const lines = renderHelp('all').split('\n');
    for (const [path, { description }] of options) {
      const at = lines.findIndex(
        (line) => line.startsWith('  --') && line.trimStart().split(' ')[0] === flagsOf(path)[0],
      );
      const shown = `${lines[at]} ${lines[at + 1]}`;
      expect(shown).toContain(description.split(' ').slice(0, 3).join(' '));
    }
  });

  it('shows the twenty options with a short flag in one line each, and where the others are', () => {
    const help = renderHelp();
    const flags = [...options.values()].flatMap(({ short = [] }) => short);
    expect(flags.length).toBeGreaterThanOrEqual(20);
    const lines = help.split('\n');
    for (const flag of flags) expect(lines.filter((line) => line.startsWith(`  ${flag} `))).toHaveLength(1);
    const first = lines.findIndex((line) => line.startsWith('  --host '));
    expect(lines.slice(first, first + flags.length).every((line) => line.startsWith('  --'))).toBe(true);
    for (const more of ['--config  ', '--help all', '/docs/README.md']) expect(help).toContain(more);
  });
});
