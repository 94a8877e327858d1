import { randomBytes } from 'node:crypto';
import { digestOfKey } from '../../src/core/auth/api-keys.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';

/** A key of each user. */
const keys = Object.fromEntries(
  ['alice', 'bob'].map((user) => [user, `key-of-${user}-${randomBytes(32).toString('base64url')}`]),
);

/** What a gateway knows of its users. */
export const userEnvironment = {
  GANGWAY_API_KEYS: Object.entries(keys)
    .map(([user, key]) => `${user}:sha256:${digestOfKey(key)}`)
    .join(','),
};

const headersOf = (user: string) => ({ Authorization: `Bearer ${keys[user]}` });

/** What each user sends with every request. */
export const [alice, bob] = [headersOf('alice'), headersOf('bob')];

/** A gateway for alice and bob, in front of our own server. */
export const startForUsers = (
  args: readonly string[],
  command: readonly string[] = everythingFixture,
): Promise<Gateway> => startGateway({ args: ['--timeouts.drain', '3s', ...args], command, env: userEnvironment });
