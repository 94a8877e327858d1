import type { Configuration, GatewayConfig } from '../../config/config.ts';
import { type Features, needed } from '../features/gateway-features.ts';
import { pinCommand } from '../servers/run-server.ts';

/** Why the gateway would not start with these pin files: a sentence for each that cannot be read, with its command. */
export const pinFaults = (
  { config, file }: Pick<Extract<Configuration, { readonly config: GatewayConfig }>, 'config' | 'file'>,
  { definitions }: Features,
): readonly string[] =>
  config.servers.flatMap(({ name, pin }) => {
    if (pin === undefined) return [];
    try {
      needed(definitions, 'pin files').openPins(pin, pinCommand(name, file));
      return [];
    } catch (cause) {
      return [(cause as Error).message];
    }
  });
