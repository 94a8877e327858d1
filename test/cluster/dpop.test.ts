import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { type DpopClient, makeDpopClient } from '../support/dpop-client.ts';
import { everythingFixture, type Gateway } from '../support/gateway.ts';
import { type Answer, post } from '../support/http-client.ts';
import { type Issuer, startIssuer, usualAudience } from '../support/issuer.ts';
import { waitFor } from '../support/wait-for.ts';

let issuer: Issuer;
let cluster: Cluster;
let ada: DpopClient;
let token: string;
beforeAll(async () => {
  [issuer, ada] = await Promise.all([startIssuer(), makeDpopClient()]);
  token = await issuer.token({ claims: { cnf: { jkt: ada.thumbprint } } });
  const args = ['--auth.oauth.issuers', issuer.url, '--public-url', new URL(usualAudience).origin];
  cluster = await startCluster({ instances: 2, command: everythingFixture, args, isPartitionable: true });
});
afterAll(async () => {
  await cluster?.stop();
  await issuer?.close();
});

/** An unknown session: the answer 404 shows that the client was authenticated. */
const ping = (gateway: Gateway, proof: string): Promise<Answer> => {
  const headers = { authorization: `DPoP ${token}`, dpop: proof, 'mcp-session-id': 'of-nobody' };
  return post(gateway.url, { jsonrpc: '2.0', id: 1, method: 'ping' }, headers);
};
const prove = (nonce?: string): Promise<string> => ada.prove(token, 'POST', usualAudience, nonce);
const nonceOf = async (gateway: Gateway): Promise<string> =>
  String((await ping(gateway, await prove())).headers['dpop-nonce']);
const causeOf = ({ json }: Answer): unknown => json.error.data.error_description;

test('[B19] a proof counts once in a cluster, also while Redis is away and after it has lost its data', async () => {
  const [a, b] = cluster.instances as [Gateway, Gateway];
  // For its first second, an instance does not know what Redis may have lost.
  const { nonce, proof } = await waitFor(
    async () => {
      const made = await nonceOf(a);
      const used = await prove(made);
      return (await ping(b, used)).status === 404 ? { nonce: made, proof: used } : undefined;
    },
    { what: 'an instance to accept the nonce of the other one', deadlineMs: 20_000 },
  );
  for (const gateway of [a, b]) expect(causeOf(await ping(gateway, proof))).toBe('The DPoP proof was used before');
  const raced = await prove(nonce);
  const answers = await Promise.all([a, b, a, b].map((gateway) => ping(gateway, raced)));
  expect(answers.filter(({ status }) => status === 404)).toHaveLength(1);

  await cluster.partition(0, 'refused');
  await cluster.partition(1, 'refused');
  const own = await waitFor(
    async () => {
      const made = await nonceOf(a);
      const sent = await prove(made);
      const { headers } = await ping(a, sent);
      return headers['dpop-nonce'] === undefined ? { nonce: made, proof: sent } : undefined;
    },
    { what: 'a nonce of this instance alone', deadlineMs: 20_000 },
  );
  expect(causeOf(await ping(a, own.proof))).toBe('The DPoP proof was used before');
  expect((await ping(b, await prove(own.nonce))).headers['dpop-nonce']).toBeDefined();
  expect((await ping(a, proof)).status).toBe(401);

  await cluster.redis.cli('FLUSHALL');
  await cluster.heal(0);
  await cluster.heal(1);
  await waitFor(async () => (await ping(b, await prove(await nonceOf(a)))).status === 404, { deadlineMs: 30_000 });
  for (const gateway of [a, b]) expect((await ping(gateway, proof)).status).toBe(401);
});
