import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { descendantsOf } from '../support/processes.ts';
import { startStage } from './stage.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gangway-stage-'));
});
afterAll(() => rm(folder, { recursive: true }));

const started = async (): Promise<readonly string[]> =>
  (await descendantsOf(process.pid)).map(({ command }) => command).filter((command) => command.includes(folder));

it('a stage without redis-server says so', async () => {
  vi.stubEnv('PATH', folder);
  await expect(startStage(folder)).rejects.toThrow('redis-server is missing');
  vi.unstubAllEnvs();
  expect(await started(), 'the gateway that is started before').not.toEqual([]);
});

it('… and leaves nothing running when its test is over', async () => {
  expect(await started()).toEqual([]);
});
