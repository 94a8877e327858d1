import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { waitFor } from './wait-for.ts';

/** A line as it was written. */
export type AuditLine = Readonly<Record<string, unknown>>;

/** A file for audit lines. */
export interface AuditFile {
  readonly path: string;
  readonly args: readonly string[];
  text(): string;
  lines(): AuditLine[];
  /** Resolves with the lines once there are so many, in short form: `method name outcome`, with the code or reason. */
  words(count: number): Promise<string[]>;
}

/** Creates an audit file in a folder that is removed with the test. */
export function createAuditFile(): AuditFile {
  const folder = mkdtempSync(join(tmpdir(), 'gangway-audit-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'audit.jsonl');
  const text = (): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');
  const lines = (): AuditLine[] => linesIn(text());
  return {
    ...{ path, args: ['--observe.audit', path], text, lines },
    words: async (count) => {
      await waitFor(() => lines().length >= count, { what: `${count} audit lines` });
      return lines().map(wordsOf);
    },
  };
}

/** The complete lines of a text. */
export const linesIn = (text: string): AuditLine[] =>
  text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

/** The short form of a line. */
export const wordsOf = ({ method, name, outcome, code, reason }: AuditLine): string =>
  [method, name, outcome, code, reason].filter((word) => word !== undefined).join(' ');
