import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished, TestRunner } from 'vitest';

/** A configuration file with servers and views, and its removal. */
export interface ViewFile {
  /** The arguments with which a gateway reads the file. */
  readonly args: readonly string[];
  remove(): Promise<void>;
}

/** A server's entry with this command. */
export const serverEntry = ([command = '', ...args]: readonly string[], more: object = {}): object => ({
  command,
  args,
  ...more,
});

/** Writes a configuration file. It is removed with the test, if a test writes it. */
export async function writeViewFile(mcpServers: object, views: object): Promise<ViewFile> {
  const folder = await mkdtemp(join(tmpdir(), 'gangway-views-'));
  const file = join(folder, 'gangway.json');
  await writeFile(file, JSON.stringify({ mcpServers, views }));
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  if (TestRunner.getCurrentTest() !== undefined) onTestFinished(remove);
  return { args: ['--config', file], remove };
}
