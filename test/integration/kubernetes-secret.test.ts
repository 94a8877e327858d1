import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeKey } from '../../src/app/commands/key-command.ts';
import { everythingFixture } from '../support/gateway.ts';
import { initialize } from '../support/http-client.ts';
import { startLocalGateway } from '../support/local-gateway.ts';
import { waitFor } from '../support/wait-for.ts';

it('follows API keys in a mounted Secret, which Kubernetes changes by exchanging a link to their folder', async () => {
  const mount = await mkdtemp(join(tmpdir(), 'gangway-secret-'));
  onTestFinished(() => rm(mount, { recursive: true }));
  const [alice, bob] = [makeKey('alice'), makeKey('bob')];
  await mountSecret(mount, '..1', `[${alice.entry}]`);
  await symlink(join('..data', 'keys.json'), join(mount, 'keys.json'));
  const { url } = await startLocalGateway({
    args: ['--auth.required', '--api-keys-file', join(mount, 'keys.json')],
    command: everythingFixture,
  });
  const opens = ({ key }: { key: string }) =>
    initialize(url, { headers: { Authorization: `Bearer ${key}` } }).then(
      () => true,
      (error: Error) => (error.message.includes('failed with 401') ? false : Promise.reject(error)),
    );
  expect([await opens(alice), await opens(bob)]).toEqual([true, false]);
  await mountSecret(mount, '..2', `[${bob.entry}]`);
  await waitFor(() => opens(bob), { what: 'the keys of the new Secret' });
  expect(await opens(alice)).toBe(false);
});

/** As the kubelet does it: a folder for each version, and `..data`, a link that is put in the place of the one before. */
async function mountSecret(mount: string, version: string, keys: string): Promise<void> {
  await mkdir(join(mount, version));
  await writeFile(join(mount, version, 'keys.json'), keys);
  await symlink(version, join(mount, '..data_tmp'));
  await rename(join(mount, '..data_tmp'), join(mount, '..data'));
}
