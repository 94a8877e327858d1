import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AuthorizationServer,
  registeredClient,
  registeredSecret,
  startAuthorizationServer,
} from './authorization-server.ts';
import { everythingFixture, type Gateway, startGateway } from './gateway.ts';
import { gatewaySecret, type ProviderProfile } from './provider-profiles.ts';
import { findFreePort } from './redis-process.ts';

/** Starts the provider, and a gateway with the options of the provider's recipe. */
export async function startProvider(
  profile: ProviderProfile,
): Promise<{ server: AuthorizationServer; gateway: Gateway }> {
  const [port, issuerPort] = [await findFreePort(), await findFreePort()];
  const publicUrl = `http://127.0.0.1:${port}`;
  const context = { endpoint: `${publicUrl}/mcp`, origin: `http://127.0.0.1:${issuerPort}` };
  const { use, read } = profile.requested(context);
  const server = await startAuthorizationServer(`openid offline_access ${use} ${read}`, {
    shape: profile.shape(context),
    issuerPath: profile.issuerPath,
    port: issuerPort,
    registers: profile.registers === true,
  });
  const configured = profile.configured ?? { use, read };
  const folder = await mkdtemp(join(tmpdir(), 'gangway-provider-'));
  const secretFile = join(folder, 'secret');
  await writeFile(secretFile, gatewaySecret, { mode: 0o600 });
  const args = [
    ...['--auth.oauth.issuers', server.url, '--public-url', publicUrl],
    ...['--defaults.scopes.required', configured.use, '--defaults.scopes.tools', `echo=${configured.read}`],
    ...profile.options({ ...context, issuer: server.url, secretFile }),
  ];
  try {
    const gateway = await startGateway({ port, args, command: everythingFixture, isStoppedWithTest: false });
    return { server, gateway };
  } catch (error) {
    await server.close();
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The client that the operator registered at the provider, as the recipe says. */
export const clientInformation = ({ name }: ProviderProfile) => ({
  ...registeredClient,
  ...(name === 'Google' && { client_secret: registeredSecret }),
});
