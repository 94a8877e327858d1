import { describe, expect, it } from 'vitest';
import { readConfiguration } from '../../src/config/config.ts';
import { renderIssue } from '../../src/config/issues.ts';
import { mistakes, type WrongConfiguration } from './wrong-configurations.ts';

const missing = (): never => {
  throw Object.assign(new Error('missing'), { code: 'ENOENT' });
};

function faultsOf({ argv = ['--config', 'gangway.json'], env = {}, file }: WrongConfiguration): string {
  const readFile = (path: string): string => {
    if (path === '/etc/gangway.d') throw Object.assign(new Error('a folder'), { code: 'EISDIR' });
    return /^gangway\.\w+$/.test(path) && file !== undefined ? file : missing();
  };
  const read = readConfiguration({ argv, env, readFile, listFolder: missing });
  return read.ok ? 'accepted' : read.faults.map(renderIssue).join('\n');
}

describe('a wrong configuration', () => {
  it('has a test for at least 60 mistakes', () => {
    expect(mistakes.length).toBeGreaterThanOrEqual(60);
  });

  it.each(mistakes)('%j is explained', (mistake, message) => {
    expect(faultsOf(mistake)).toBe(message);
  });
});
