import { afterAll, beforeAll, describe } from 'vitest';
import { testFidelity } from '../support/fidelity-suite.ts';
import { everythingFixture, type Gateway, startGateway } from '../support/gateway.ts';
import { initialize, type Session } from '../support/http-client.ts';

describe('P1: a message arrives as the same JSON text its sender wrote', () => {
  let gateway: Gateway;
  let session: Session;
  beforeAll(async () => {
    gateway = await startGateway({ command: everythingFixture });
    session = await initialize(gateway.url);
  });
  afterAll(async () => void (await gateway?.stop()));

  testFidelity(() => session);
});
