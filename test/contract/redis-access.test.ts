import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explainTrouble } from '../../src/features/redis/diagnose/trouble.ts';
import { createRedisStore } from '../../src/features/redis/redis-store.ts';
import { findFreePort } from '../support/redis-process.ts';
import { startRedis } from '../support/redis-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { aRecord } from './log-writer.ts';
import { freshPrefix, openRedisStore, redisOptions } from './redis-fixture.ts';
import { useAll } from './use-all.ts';

const run = promisify(execFile);

describe('access to Redis', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gangway-tls-'));
    // Throw-away: an authority, and a certificate of it for the server and the client. Fails where openssl is missing.
    const openssl = (...args: string[]) => run('openssl', args, { cwd: folder });
    const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    await openssl(
      'req',
      '-x509',
      ...newKey,
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-days',
      '2',
      '-subj',
      '/CN=test ca',
    );
    await openssl('req', ...newKey, '-keyout', 'key.pem', '-out', 'request.pem', '-subj', '/CN=localhost');
    const signed = ['-in', 'request.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
    await openssl('x509', '-req', ...signed, '-out', 'cert.pem');
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('[S22b] is by user and password, of a user who may only do what the store does', async () => {
    const redis = await startRedis();
    const prefix = freshPrefix();
    const rights = ['~other:*', `~${prefix}:*`, '+@all', '-@dangerous', '-@admin', '+info'];
    await redis.cli('ACL', 'SETUSER', 'gate', 'on', '>p@ss:w/rd', ...rights);
    const url = `redis://gate:${encodeURIComponent('p@ss:w/rd')}@127.0.0.1:${redis.port}/0`;
    const store = await openRedisStore({ url, prefix });
    await store.sessions.create('s', aRecord());
    await store.instances.join('me');
    await store.instances.publishAddress('me', 'a:1');
    expect(await store.instances.addresses()).toEqual(new Map([['me', 'a:1']]));
    expect(await store.sessions.find('s')).toEqual(aRecord());
    await store.close();
  });

  /** The user that docs/scaling.md describes, whose keys begin with a prefix. */
  const documentedRights = async (prefix: string): Promise<readonly string[]> => {
    const [, rights = ''] =
      /^ACL SETUSER gangway on >… (.*?)\n```/ms.exec(await readFile('docs/scaling.md', 'utf8')) ?? [];
    return rights.replace('~gangway:*', `~${prefix}:*`).split(/\s+/);
  };

  it('[S22b] is by a user who has the rights that docs/scaling.md names, and needs no other', async () => {
    const redis = await startRedis();
    const prefix = freshPrefix();
    const words = await documentedRights(prefix);
    await redis.cli('ACL', 'SETUSER', 'gangway', 'on', '>secret', ...words);
    const store = await openRedisStore({ url: `redis://gangway:secret@127.0.0.1:${redis.port}`, prefix });
    await useAll(store, 'x');
    await store.close();
    expect(await redis.cli('ACL', 'LOG')).toBe('');
  });

  it('[S22b] has a right in docs/scaling.md for each command of each script, also of those for rare cases', async () => {
    const words = await documentedRights('gangway');
    const folderOfScripts = 'src/features/redis/scripts';
    const calls = /redis\.p?call\('([A-Z]+)'(?:, '([A-Z]+)')?/g;
    const files = await readdir(folderOfScripts);
    for (const name of files) {
      const script = await readFile(join(folderOfScripts, name), 'utf8');
      const commands = [...script.matchAll(calls)].map(([, command = '', next = '']) => [command, next] as const);
      expect(commands.length, name).toBeGreaterThan(0);
      for (const [command, next] of commands) {
        const right = `+${['XGROUP', 'XINFO'].includes(command) ? `${command}|${next}` : command}`.toLowerCase();
        expect(words, name).toContain(right);
      }
    }
  });

  it.each(['getex', 'hgetall', 'xrange'])('[S22b] [U-07] without %s is told as a missing right', async (right) => {
    const redis = await startRedis();
    const prefix = freshPrefix();
    const words = await documentedRights(prefix);
    expect(words).toContain(`+${right}`);
    await redis.cli('ACL', 'SETUSER', 'gangway', 'on', '>secret', ...words.filter((word) => word !== `+${right}`));
    const store = await openRedisStore({ url: `redis://gangway:secret@127.0.0.1:${redis.port}`, prefix });
    const refused: unknown = await useAll(store, 'x').catch((cause: unknown) => cause);
    await store.close();
    expect(refused).toMatchObject({ name: 'StoreUnavailable', reason: 'refused' });
    // Redis 7.0 does not name a command that a script calls.
    expect(explainTrouble(refused).detail).toMatch(/lacks (a|the) permission/);
    expect(await redis.cli('ACL', 'LOG')).toContain(right);
  });

  it('[S22b] with a wrong password is told without the password, and works once it is right', async () => {
    const redis = await startRedis();
    await redis.cli('ACL', 'SETUSER', 'gate', 'on', '>right', '~*', '+@all');
    const errors: unknown[] = [];
    const store = createRedisStore(
      redisOptions({
        url: `redis://gate:wrong-secret@127.0.0.1:${redis.port}`,
        prefix: freshPrefix(),
        onError: (cause) => errors.push(cause),
      }),
    );
    await waitFor(() => errors.length > 0, { what: 'the error' });
    await expect(store.sessions.find('s')).rejects.toMatchObject({ name: 'StoreUnavailable', reason: 'unreachable' });
    expect(String(errors[0])).toMatch(/WRONGPASS/);
    expect(JSON.stringify(errors.map((error) => ({ ...(error as Error), text: String(error) })))).not.toMatch('secret');
    await redis.cli('ACL', 'SETUSER', 'gate', '>wrong-secret');
    await waitFor(() => store.healthyForMs() > 0, { what: 'the connection' });
    await store.close();
  });

  it('[S22b] is over TLS with a certificate on both sides, and refused with none or of another authority', async () => {
    const tlsPort = await findFreePort();
    const file = (name: string): string => join(folder, name);
    const files = ['--tls-cert-file', file('cert.pem'), '--tls-key-file', file('key.pem')];
    await startRedis({ args: ['--tls-port', `${tlsPort}`, ...files, '--tls-ca-cert-file', file('ca.pem')] });
    const [ca, cert, key] = await Promise.all(['ca.pem', 'cert.pem', 'key.pem'].map((name) => readFile(file(name))));
    if (ca === undefined || cert === undefined || key === undefined) throw new Error('unreachable');
    const url = `rediss://localhost:${tlsPort}`;

    const store = await openRedisStore({ url, prefix: freshPrefix(), tls: { ca, cert, key } });
    await store.sessions.create('s', aRecord());
    await store.instances.join('me');
    expect(await store.sessions.find('s')).toEqual(aRecord());
    await store.close();

    for (const tls of [{ ca }, { cert, key }]) {
      const errors: unknown[] = [];
      const refused = createRedisStore(redisOptions({ url, tls, onError: (cause) => errors.push(cause) }));
      await waitFor(() => errors.length > 0, { what: 'the error' });
      await expect(refused.sessions.find('s')).rejects.toMatchObject({ reason: 'unreachable' });
      await refused.close();
    }
  });
});
