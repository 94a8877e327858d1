import { expect, it } from 'vitest';
import { startPackageRegistry } from '../support/package-registry.ts';
import { walk } from './walk.ts';

it('docs/recipes/packages.md leads from a name to a server, and to its upgrade', async () => {
  const name = '@modelcontextprotocol/server-everything';
  const registry = await startPackageRegistry({ name, version: '2026.7.4' }, { name, version: '2026.8.31' });
  const recipe = await walk({
    page: 'docs/recipes/packages.md',
    ports: [8080],
    env: { ...registry.env, GANGWAY_PACKAGES_FOLDER: registry.folder },
    deadlineMs: 60_000,
  });
  await registry.publish({ name, version: '2026.9.1' });
  expect(await recipe.run('mcp-gangway upgrade --config gangway.json')).toContain('2026.9.1, before 2026.8.31');
});
