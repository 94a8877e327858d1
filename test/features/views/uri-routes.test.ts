import { describe, expect, it } from 'vitest';
import { listOf } from '../../../src/core/protocol/methods/methods.ts';
import { UriRoutes } from '../../../src/features/views/uri-routes.ts';
import { costOf } from '../../support/cpu-time.ts';

const routesOf = (...servers: string[]) => new UriRoutes(servers);
const { folderOf } = listOf('skills/list').list;
const learnSkill = (routes: UriRoutes, uri: string, index: number) => routes.learn('uri', uri, index, folderOf?.(uri));

describe('the folders of skills', () => {
  it('[P2] belong to the server of the skill, whatever templates the others have', () => {
    const routes = routesOf('a', 'b');
    routes.learn('uriTemplate', 'skill://{+path}', 0);
    routes.learn('uriTemplate', 'file:///{+path}', 0);
    for (const uri of ['skill://b/SKILL.md', 'skill:///SKILL.md', 'file:///SKILL.md']) learnSkill(routes, uri, 1);
    learnSkill(routes, 'skill://b/in/SKILL.md', 0);
    const uris = ['skill://b', 'skill://b/x/y', 'skill://b/in/x', 'skill://other/x', 'file:///x', 'skill:///x'];
    expect(uris.map((uri) => routes.findUri(uri))).toEqual([1, 1, 0, 0, 0, 0]);
    routes.forget(1);
    expect(routes.findUri('skill://b/x/y')).toBe(0);
  });

  it('[G-04] [P8] are looked for in bounded time', () => {
    const routes = routesOf('a', 'b');
    learnSkill(routes, 'skill://b/SKILL.md', 1);
    expect(routes.findUri(`skill://b${'/x'.repeat(1_000)}`)).toBeUndefined();
  });
});

describe('templates of the servers of a view', () => {
  it('[G-13] [P2] match in the order of the file, whichever server answers first', () => {
    const routes = routesOf('a', 'b');
    routes.learn('uriTemplate', 'file:///{path}', 1);
    expect(routes.findUri('file:///x')).toBe(1);
    routes.learn('uriTemplate', 'file:///{all}', 0);
    expect([routes.findUri('file:///x'), routes.findUri('file:///{path}')]).toEqual([0, 1]);
  });

  it.each(['{all}', '{+all}', '{scheme}://{rest}', '//{x}'])(
    '[G-13] [P2] without a literal scheme match nothing: %s',
    (all) => {
      const routes = routesOf('a', 'b');
      routes.learn('uriTemplate', all, 1);
      expect(routes.findUri('file:///x')).toBeUndefined();
      expect(routes.findUri(all)).toBe(1);
    },
  );

  it.each([
    ['db://{table}/rows/{id}', ['db://t/rows/1', 'db://t/rows/', 'db:///rows/a/rows/b'], ['db://t/row/1', 'db://t']],
    ['db://{table}.csv', ['db://a.csv', 'db://.csv'], ['db://a.csvx', 'db:/']],
    ['db://a{?q}a', ['db://aa', 'db://axa'], ['db://a']],
    ['db://fixed', ['db://fixed'], ['db://fixed2', 'db://']],
  ])('have variables for any text: %s', (template, matching, others) => {
    const routes = routesOf('a', 'b');
    routes.learn('uriTemplate', template, 1);
    expect(matching.map((uri) => routes.findUri(uri))).toEqual(matching.map(() => 1));
    expect(others.map((uri) => routes.findUri(uri))).toEqual(others.map(() => undefined));
  });

  it.each([
    ['many short texts', (index: number) => `x:{v}${'a{v}'.repeat(150)}${'ab'.repeat(100)}${index}{v}`],
    ['one long text', (index: number) => `x:{v}${index}b${'a'.repeat(900)}{v}`],
    ['the text of the URI', (index: number) => `x:{v}${'a'.repeat(900)}${index}{v}`],
  ])('[G-04] [P8] take bounded time, however many a server has, for a URI of any length: %s', (_, templateOf) => {
    const routes = routesOf('a', 'b');
    for (let index = 0; index < 1_000; index += 1) routes.learn('uriTemplate', templateOf(index), 1);
    for (const length of [1_000, 2_000, 65_000])
      expect(costOf(() => routes.findUri(`x:${'a'.repeat(length)}`), 5)).toBeLessThan(5);
  });
});

describe('what a view remembers of its servers', () => {
  const long = (scheme: string) => `${scheme}${'x'.repeat(2_048)}`;

  it('[G-11] [P8] is no long URI and no long template: a client gets them, and reads them as URIs that no list names', () => {
    const routes = routesOf('a', 'b');
    expect(routes.learn('uri', long('file:///'), 1)).toBe(true);
    expect(routes.learn('uriTemplate', long('file:///{x}'), 1)).toBe(true);
    routes.noteReader(long('file:///'), 1);
    routes.claimTask(long('t'), 1);
    expect([routes.findUri(long('file:///')), routes.findTask(long('t'))]).toEqual([undefined, undefined]);
  });

  it('[G-11] [P8] takes at most so many bytes: the oldest URIs go', () => {
    const routes = routesOf('a', 'b');
    const uriOf = (index: number) => `file:///${String(index).padStart(5, '0')}${'x'.repeat(1_900)}`;
    for (let index = 0; index < 20_000; index += 1) routes.learn('uri', uriOf(index), 1);
    const known = Array.from({ length: 20_000 }, (_, index) => routes.findUri(uriOf(index))).filter((at) => at === 1);
    expect(known.length).toBeGreaterThan(1_000);
    expect(known.length * 1_900).toBeLessThan(4 * 1024 * 1024);
  });
});

describe('pages of the servers of a view', () => {
  it('[P2] belong to the server that their URI names, whatever a list says', () => {
    const routes = routesOf('a', 'b');
    expect([routes.learn('uri', 'ui://a/main', 1), routes.learn('uri', 'ui://b/main', 1)]).toEqual([false, true]);
    expect(['ui://a/x', 'ui://b/x', 'ui://c/x'].map((uri) => routes.findUri(uri))).toEqual([0, 1, undefined]);
    expect(['ui://b/x', 'ui://c/x', 'file:///x'].map((uri) => routes.isNobodys(uri))).toEqual([false, true, false]);
    expect([routes.mayReport('ui://a/x', 1), routes.mayReport('ui://b/x', 1)]).toEqual([false, true]);
  });

  it('stay as they are in a view of one server', () => {
    const routes = routesOf('a');
    expect([routes.pagesOf(0), routes.learn('uri', 'ui://main', 0), routes.findUri('ui://main')]).toEqual([
      undefined,
      true,
      0,
    ]);
  });
});
