import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { modernClients, newestClients, sseClients, webSocketClients } from '../support/client-kinds.ts';
import { type InProcessGateway, type ServedEras, startInProcess } from '../support/in-process-gateway.ts';
import type { SdkClient } from '../support/sdk-clients.ts';
import { type Feature, featuresAt, featuresOfFixture, featuresOfModernFixture } from '../support/sdk-features.ts';

/** The era of the client times the era of the server times each feature, all in this process. */
const servers: readonly (readonly [ServedEras, readonly Feature[]])[] = [
  ['legacy', featuresOfFixture],
  ['modern', featuresOfModernFixture],
  ['both', featuresOfModernFixture],
];

/** One of each endpoint, and both eras. `test/integration/cross.test.ts` has all clients and transports. */
const clients = [newestClients[1], sseClients[0], webSocketClients[1], modernClients[0]].filter(
  (client) => client !== undefined,
);

/** What the features of the fixtures do not have yet. */
const more: readonly Feature[] = [
  [
    'large answers, whole and unchanged',
    async (client) => {
      for (const size of [70_000, 300_000]) {
        const text = 'ä"\n'.repeat(size / 3);
        expect(await client.callTool('echo', { text })).toBe(text);
      }
    },
  ],
  [
    'twenty calls at once, each with its own answer',
    async (client) => {
      const texts = Array.from({ length: 20 }, (_, index) => `text ${index}`);
      expect(await Promise.all(texts.map((text) => client.callTool('echo', { text })))).toEqual(texts);
    },
  ],
];

describe.each(servers)('a server of the eras: %s', (eras, features) => {
  let gateway: InProcessGateway;
  beforeAll(async () => {
    gateway = await startInProcess(eras);
  });
  afterAll(() => gateway?.close());

  describe.each(clients)('$name', ({ speech, connect }) => {
    let client: SdkClient;
    beforeAll(async () => {
      client = await connect(gateway.url);
    });
    afterAll(() => client?.close());

    test('[R7.06] [R9.01] negotiates the revision that it asks for', () => {
      expect(client.protocolVersion).toBe(speech.revision);
    });

    test.each(featuresAt([...features, ...more], speech.revision))('%s', (_feature, run) => run(client));
  });
});
