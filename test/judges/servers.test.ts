// Published servers from npm, each asked the same directly on STDIO and through the gateway.
import { beforeAll } from 'vitest';
import { installServers } from './install-clients.ts';
import { publishedServers } from './published-servers.ts';
import { judgeServers } from './server-arms.ts';

beforeAll(installServers, 1_000_000);

judgeServers('Published servers', publishedServers);
