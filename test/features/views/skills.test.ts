import { describe, expect, test } from 'vitest';
import { type Answering, startView } from './view-fixture.ts';

const skills = 'io.modelcontextprotocol/skills';
const skill = (name: string) => ({
  uri: `skill://${name}/SKILL.md`,
  frontmatter: { name, description: name },
  resources: [],
});
const notFound = { error: { code: -32602, message: 'no such skill' } };

/** A server with skills on two pages. It serves a hidden one and the folders of all, too. */
const skillServer =
  (...names: string[]): Answering =>
  (method, { uri, cursor }) => {
    const at = cursor === undefined ? 0 : Number(cursor);
    const nextCursor = at + 1 < names.length ? String(at + 1) : undefined;
    const isOwn = [...names, `${names[0]}-hidden`].some((name) => String(uri).startsWith(`skill://${name}/`));
    if (method === 'skills/list') return { result: { skills: names.slice(at, at + 1).map(skill), nextCursor } };
    if (method === 'resources/list') return { result: { resources: [] } };
    // As official SDKs: every server has the same template for the files of its skills.
    if (method === 'resources/templates/list')
      return { result: { resourceTemplates: [{ name: 'files', uriTemplate: 'skill://{+path}' }] } };
    if (method === 'skills/get') return isOwn ? { result: { skill: { uri, by: names[0] } } } : notFound;
    if (method === 'resources/directory/read')
      return isOwn ? { result: { resources: [{ uri, by: names[0] }] } } : notFound;
    if (method === 'resources/read') return isOwn ? { result: { contents: [{ uri, by: names[0] }] } } : notFound;
    return undefined;
  };

const declared = { resources: {}, extensions: { [skills]: { directoryRead: true } } };
const start = (a: readonly string[], b: readonly string[]) =>
  startView({
    answers: { a: skillServer(...a), b: skillServer(...b) },
    capabilities: { a: declared, b: declared },
  });

describe('the Skills extension in a view (SEP-2640)', () => {
  test('lists the skills of all servers, page by page, and each URI once', async () => {
    const { request } = await start(['one', 'same'], ['two', 'same', 'three']);
    const uris: string[] = [];
    let cursor: string | undefined;
    do {
      const { result } = await request('skills/list', { cursor });
      uris.push(...result.skills.map(({ uri }: { uri: string }) => uri));
      cursor = result.nextCursor;
    } while (cursor !== undefined);
    expect(uris).toEqual(['one', 'two', 'same', 'three'].map((name) => skill(name).uri));
  });

  test.each([
    ['skills/get', 'skill://two/SKILL.md'],
    ['skills/get', 'skill://two-hidden/SKILL.md'],
    ['resources/directory/read', 'skill://two/'],
    ['resources/directory/read', 'skill://two/deep/folder'],
    ['resources/read', 'skill://two/deep/file.md'],
  ])('leads %s of %s to the server that has it', async (method, uri) => {
    const { request } = await start(['one'], ['two']);
    if (method === 'resources/read') await request('skills/list');
    const { result } = await request(method, { uri });
    const [found] = [result.skill ?? result.resources ?? result.contents].flat();
    expect(found).toEqual({ uri, by: 'two' });
  });

  test('says that a skill is not there, with the words of the last server', async () => {
    const { request } = await start(['one'], ['two']);
    expect(await request('skills/get', { uri: 'skill://three/SKILL.md' })).toMatchObject(notFound);
  });

  test('asks only the servers that declare it, and is unknown where none does', async () => {
    const answers = { a: () => undefined, b: skillServer('two') };
    const one = await startView({ answers, capabilities: { a: { resources: {} }, b: declared } });
    expect((await one.request('skills/list')).result.skills).toEqual([skill('two')]);
    expect((await one.request('skills/get', { uri: 'skill://x/SKILL.md' })).error.code).toBe(-32602);
    const none = await startView({ answers });
    expect((await none.request('skills/list')).error.data.reason).toBe('method_of_view');
  });
});
