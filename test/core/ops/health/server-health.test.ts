import { describe, expect, it, vi } from 'vitest';
import type { BackendEnd } from '../../../../src/core/backend/backend.ts';
import { serverFailure } from '../../../../src/core/ops/health/server-failure.ts';
import { ServerHealth } from '../../../../src/core/ops/health/server-health.ts';
import type { Era } from '../../../../src/core/protocol/revisions.ts';

function healthOf(transport: string) {
  const health = new ServerHealth();
  health.add('it', { transport, isRequired: false, era: () => 'legacy' });
  const lastOf = () => health.statuses.find(({ server }) => server === 'it')?.last;
  return { health, lastOf };
}

describe('how a server does', () => {
  it('is what came of it last', () => {
    const { health, lastOf } = healthOf('stdio');
    expect(lastOf()).toBeUndefined();
    health.failed('it', serverFailure('no_answer'));
    expect(lastOf()).toMatchObject({ state: 'failed', reason: 'no_answer' });
    health.started('it');
    expect(lastOf()).toEqual({ state: 'started', at: expect.any(Date) });
  });

  it.each<[string, Partial<BackendEnd> & Pick<BackendEnd, 'reason'>, object | undefined]>([
    ['stdio', { reason: 'exited', exitCode: 3 }, { reason: 'exited', why: 'The server exited with code 3.' }],
    ['stdio', { reason: 'exited', exitCode: null, signal: 'SIGSEGV' }, { why: 'The server exited after SIGSEGV.' }],
    ['stdio', { reason: 'failed' }, { reason: 'not_started' }],
    ['stdio', { reason: 'failed', isNotFound: true }, { reason: 'not_found' }],
    ['http', { reason: 'failed' }, { reason: 'unreachable' }],
    ['tcp', { reason: 'exited' }, { reason: 'disconnected' }],
    ['stdio', { reason: 'memory_limit' }, { reason: 'memory_limit' }],
    ['stdio', { reason: 'closed' }, undefined],
  ])('[P12] %s that ended with %j: in words of the gateway alone', (transport, end, said) => {
    const { health, lastOf } = healthOf(transport);
    health.ended('it', { detail: '/srv/secret ended', lastOutput: ['token=hunter2'], ...end });
    if (said === undefined) expect(lastOf()).toBeUndefined();
    else expect(lastOf()).toMatchObject(said);
    expect(JSON.stringify(health.statuses)).not.toMatch(/secret|hunter2/);
    const details = { detail: '/srv/secret ended', output: ['token=hunter2'], help: undefined };
    expect(health.detailsOf('it')).toEqual(said && details);
    health.started('it');
    expect(health.detailsOf('it')).toBeUndefined();
  });

  it('says what to do about one that did not start, and nothing of what ended later', () => {
    const { health, lastOf } = healthOf('stdio');
    const end = { reason: 'exited', detail: 'x' } as const;
    health.ended('it', end, { isAtStart: true });
    expect(lastOf()).toMatchObject({ reason: 'exited', help: expect.stringContaining('Run the command manually') });
    health.ended('it', end);
    expect(lastOf()).toMatchObject({ reason: 'exited', help: undefined });
    health.ended('it', { reason: 'failed', detail: 'x', isNotFound: true });
    expect(lastOf()).toMatchObject({ help: expect.stringContaining('mcp-gangway check') });
  });

  it('is of the era in which it has answered, until it was asked for its era', () => {
    let found: Era | undefined;
    const health = new ServerHealth();
    health.add('it', { transport: 'stdio', isRequired: false, era: () => found });
    const heard = vi.fn();
    health.onChange(heard);
    expect(health.statuses[0]?.era).toBeUndefined();
    health.eraSeen('it', 'legacy');
    health.eraSeen('it', 'legacy');
    expect([health.statuses[0]?.era, heard.mock.calls.length]).toEqual(['legacy', 1]);
    found = 'modern';
    expect(health.statuses[0]?.era).toBe('modern');
    health.add('it', { transport: 'stdio', isRequired: false, era: () => undefined });
    expect(health.statuses[0]?.era).toBeUndefined();
  });

  it('is not known of one that is not configured, or in another way', () => {
    const { health, lastOf } = healthOf('stdio');
    health.started('other');
    expect(health.statuses).toHaveLength(1);
    health.started('it');
    health.add('it', { transport: 'http', isRequired: true, era: () => undefined });
    expect(lastOf()).toBeUndefined();
    health.remove('it');
    health.started('it');
    expect(health.statuses).toEqual([]);
  });

  it('is kept over a reload if it worked, and a failure is forgotten', () => {
    const { health, lastOf } = healthOf('stdio');
    const reload = () => health.add('it', { transport: 'stdio', isRequired: false, era: () => undefined });
    health.started('it');
    reload();
    expect(lastOf()).toMatchObject({ state: 'started' });
    health.failed('it', serverFailure('no_answer'));
    reload();
    expect(lastOf()).toBeUndefined();
  });

  it('of a view is how its worst server does, which is named', () => {
    const { health } = healthOf('stdio');
    health.add('other', { transport: 'stdio', isRequired: false, era: () => undefined });
    health.add('all', { transport: 'view', isRequired: false, members: ['it', 'other'], era: () => undefined });
    const viewOf = () => health.statuses.find(({ server }) => server === 'all')?.last;
    const heard: string[] = [];
    health.onChange((server) => heard.push(server));
    expect(viewOf()).toBeUndefined();
    health.started('other');
    expect([viewOf(), heard]).toEqual([{ state: 'started', at: expect.any(Date) }, ['other', 'all']]);
    health.ended('it', { reason: 'exited', detail: 'node ended', exitCode: 3, lastOutput: ['KeyError'] });
    expect(viewOf()).toMatchObject({ state: 'failed', why: 'it: The server exited with code 3.' });
    expect(health.detailsOf('all')).toEqual({ detail: 'it: node ended', help: undefined, output: ['KeyError'] });
    health.started('it');
    expect([viewOf()?.state, health.detailsOf('all')]).toEqual(['started', undefined]);
  });

  it('is told when it changes', () => {
    const { health } = healthOf('auto');
    const heard = vi.fn();
    const end = health.onChange(heard);
    health.transportFound('it', 'sse');
    health.probed('it', 'up');
    health.probed('it', 'up');
    expect(heard.mock.calls).toEqual([['it'], ['it']]);
    expect(health.statuses[0]).toMatchObject({ transport: 'sse', probe: 'up', era: 'legacy' });
    end();
    health.started('it');
    expect(heard).toHaveBeenCalledTimes(2);
  });
});
